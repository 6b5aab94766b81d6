package penstock;

import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.Serializable;
import java.util.Properties;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.CallSite;
import scala.collection.Iterator;
import scala.collection.immutable.Range$;
import scala.runtime.AbstractFunction2;

/**
 * The rows of a micro-batch as Arrow streams in a file. Spark has planned the batch when it hands it over; asked
 * for its rows in the usual way it would plan again, search its functions for what cannot be sent, and serve the
 * rows through a socket.
 */
public class BatchRows extends AbstractFunction2 implements Serializable {
  private final StructType schema;
  private final String zone;

  BatchRows(StructType schema, String zone) {
    this.schema = schema;
    this.zone = zone;
  }

  /**
   * Runs the batch and writes one stream for each partition that has rows, or one without rows. As one job; where
   * `here` is set, and its plan allows it, without a job.
   */
  public static void write(Dataset batch, String file, boolean here) throws IOException {
    write(batch.sparkSession(), rows(batch), batch.schema(), file, here);
  }

  static void write(SparkSession session, RDD rows, StructType schema, String file, boolean here) throws IOException {
    String zone = session.sessionState().conf().sessionLocalTimeZone();
    SparkContext spark = session.sparkContext();
    BatchRows arrow = new BatchRows(schema, zone);
    byte[][] streams = here && TaskHere.can(rows) ? here(spark, rows, arrow) : job(spark, rows, arrow);
    OutputStream out = new BufferedOutputStream(new FileOutputStream(file));
    try {
      int written = 0;
      for (int i = 0; i < streams.length; i++) {
        out.write(streams[i]);
        written += streams[i].length;
      }
      if (written == 0) {
        out.write(ArrowConverters$.MODULE$.createEmptyArrowBatch(schema, zone, true, false));
      }
    } finally {
      out.close();
    }
  }

  private static RDD rows(Dataset batch) {
    LogicalPlan plan = batch.logicalPlan();
    return plan instanceof LogicalRDD ? ((LogicalRDD) plan).rdd() : batch.queryExecution().toRdd();
  }

  private static byte[][] here(SparkContext spark, RDD rows, BatchRows arrow) {
    Properties settings = (Properties) spark.localProperties().get();
    return new byte[][] {(byte[]) TaskHere.run(rows, arrow, settings)};
  }

  private static byte[][] job(SparkContext spark, RDD rows, BatchRows arrow) {
    int partitions = rows.getNumPartitions();
    Streams streams = new Streams(partitions);
    spark.dagScheduler().runJob(
        rows,
        arrow,
        Range$.MODULE$.apply(0, partitions),
        new CallSite("turn", "turn"),
        streams,
        (Properties) spark.localProperties().get());
    return streams.found;
  }

  /** The rows of a partition as one stream; of no length if it has none. */
  public Object apply(Object task, Object rows) {
    Iterator streams = ArrowConverters$.MODULE$.toBatchWithSchemaIterator(
        (Iterator) rows, schema, Long.MAX_VALUE, Long.MAX_VALUE, zone, true, false);
    return streams.hasNext() ? streams.next() : new byte[0];
  }

  /** Puts the stream of each partition in its place. */
  private static class Streams extends AbstractFunction2 {
    private final byte[][] found;

    Streams(int partitions) {
      this.found = new byte[partitions][];
    }

    public Object apply(Object partition, Object stream) {
      found[((Integer) partition).intValue()] = (byte[]) stream;
      return scala.runtime.BoxedUnit.UNIT;
    }
  }
}
