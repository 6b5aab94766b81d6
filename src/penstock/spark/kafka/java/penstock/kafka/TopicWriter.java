package penstock.kafka;

import java.util.Map;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap$;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.kafka010.KafkaSourceProvider$;
import org.apache.spark.sql.kafka010.KafkaWriteTask;
import org.apache.spark.sql.kafka010.KafkaWriter;
import org.apache.spark.util.LongAccumulator;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Writes the rows of a turn to Kafka with the tasks of Spark's own connector, and counts them. */
public class TopicWriter {
  /** "rows N" once the broker has acknowledged all; "away REASON" if it was not there for that. */
  public static String write(Dataset frame, Map settings, String topic) {
    QueryExecution made = ((org.apache.spark.sql.classic.Dataset) frame).queryExecution();
    Seq output = made.analyzed().output();
    Option to = topic.isEmpty() ? Option.empty() : Option.apply(topic);
    KafkaWriter.validateQuery(output, to);
    Map params = KafkaSourceProvider$.MODULE$.kafkaParamsForProducer(
        CaseInsensitiveMap$.MODULE$.apply(Settings.scala(settings)));
    LongAccumulator rows = new LongAccumulator();
    frame.sparkSession().sparkContext().register(rows);
    try {
      made.toRdd().foreachPartition(new Send(params, output, to, rows));
    } catch (Throwable failed) {
      String away = away(failed);
      if (away.isEmpty()) {
        throw failed;
      }
      return "away " + away;
    }
    return "rows " + rows.value();
  }

  /** Why a turn could not reach its broker; "" where that is not what went wrong. */
  public static String away(Throwable failed) {
    for (Throwable cause = failed; cause != null; cause = cause.getCause()) {
      if (cause instanceof RetriableException || cause instanceof java.util.concurrent.TimeoutException) {
        return cause.getClass().getSimpleName() + ": " + cause.getMessage();
      }
    }
    return "";
  }

  /** The rows of one task. */
  private static class Send extends AbstractFunction1 implements java.io.Serializable {
    private final Map params;
    private final Seq output;
    private final Option topic;
    private final LongAccumulator rows;

    Send(Map params, Seq output, Option topic, LongAccumulator rows) {
      this.params = params;
      this.output = output;
      this.topic = topic;
      this.rows = rows;
    }

    public Object apply(Object given) {
      KafkaWriteTask task = new KafkaWriteTask(params, output, topic);
      Counting counting = new Counting((Iterator) given);
      try {
        task.execute(counting);
      } finally {
        task.close();
      }
      rows.add(counting.count);
      return BoxedUnit.UNIT;
    }
  }

  /** Counts what is taken from it. */
  private static class Counting extends scala.collection.AbstractIterator {
    private final Iterator rows;
    long count = 0;

    Counting(Iterator rows) {
      this.rows = rows;
    }

    public boolean hasNext() {
      return rows.hasNext();
    }

    public Object next() {
      count++;
      return rows.next();
    }
  }
}
