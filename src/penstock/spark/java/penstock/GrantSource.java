package penstock;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.execution.streaming.runtime.LongOffset;
import org.apache.spark.sql.execution.streaming.runtime.SerializedOffset;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * A streaming source whose offsets are the numbers of grants: the batch between two offsets is the
 * files granted between them. It lists nothing, keeps no log of its own, and never forgets a file.
 */
public class GrantSource implements Source {
  private final SparkSession session;
  private final StructType schema;
  private final GrantBook book;

  public GrantSource(SparkSession session, StructType schema, GrantBook book) {
    this.session = session;
    this.schema = schema;
    this.book = book;
  }

  public StructType schema() {
    return schema;
  }

  public Option getOffset() {
    long latest = book.latest();
    return latest == 0 ? Option.empty() : Option.apply(LongOffset.apply(latest));
  }

  public Dataset getBatch(Option start, Offset end) {
    long first = start.isEmpty() ? 1 : number((Offset) start.get()) + 1;
    GrantedFiles files = book.between(first, number(end));
    LogicalRelation plan = LogicalRelation$.MODULE$.apply(files.relation(session, schema), true);
    // Nothing is left to be found out about it; Spark would try all its rules to see that, 2 ms a batch.
    plan.setAnalyzed();
    return Dataset$.MODULE$.ofRows((org.apache.spark.sql.classic.SparkSession) session, plan);
  }

  private static long number(Offset offset) {
    if (offset instanceof SerializedOffset) {
      return LongOffset.apply((SerializedOffset) offset).offset();
    }
    return ((LongOffset) offset).offset();
  }

  public void stop() {}
}
