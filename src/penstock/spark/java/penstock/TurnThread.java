package penstock;

import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.CallSite;

/** What is set once on a thread that runs turns. */
final class TurnThread {
  private static final CallSite TURN = new CallSite("turn", "turn");

  private TurnThread() {}

  /** Names what it runs: Spark looks for the user's line of code at every RDD that it makes, unless it is told one. */
  static void name(SparkSession session) {
    SparkContext spark = session.sparkContext();
    if (spark.getLocalProperty("callSite.long") == null) {
      spark.setCallSite(TURN);
    }
  }
}
