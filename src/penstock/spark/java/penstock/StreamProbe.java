package penstock;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqMetadata;
import org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqMetadata$;
import org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeWatermarkExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreSaveExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter;
import org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution;
import org.apache.spark.sql.execution.streaming.runtime.LongOffset;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.execution.streaming.runtime.WatermarkTracker;
import org.apache.spark.sql.execution.streaming.sources.RateStreamMicroBatchStream;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.util.AccumulatorV2;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Map$;

/** What a held query knows and its public interface does not tell. Only called while the query is held. */
public class StreamProbe {
  /** The run ids of the session's active queries. */
  public static String alive(SparkSession session) {
    StringBuilder ids = new StringBuilder();
    StreamingQuery[] queries = session.streams().active();
    for (int i = 0; i < queries.length; i++) {
      // One that was stopped while it is held is listed until its callback returns.
      if (queries[i].isActive()) {
        ids.append(queries[i].runId()).append(' ');
      }
    }
    return ids.toString();
  }

  /** Rows read, rows dropped as late, 1 if Spark wants a batch without data, and rows of state that were written. */
  public static String afterBatch(IncrementalExecution last, WatermarkTracker tracker) {
    SparkPlan plan = last.executedPlan();
    // Spark does the same as soon as the callback returns: doing it now changes nothing, but tells.
    tracker.updateWatermark(plan);
    long watermark = tracker.currentWatermark();
    int flush = wantsFlush(last, plan, watermark) ? 1 : 0;
    // One string: an array would cross to Python element by element.
    return rowsRead(plan) + " " + sum(plan, "numRowsDroppedByWatermark") + " " + flush + " "
        + sum(plan, "numUpdatedStateRows");
  }

  /** Windows up to `millis` are closed by the next batch itself; it never moves back. Whether it moved. */
  public static boolean raiseWatermark(WatermarkTracker tracker, long millis) {
    if (millis <= tracker.currentWatermark()) {
      return false;
    }
    tracker.setWatermark(millis);
    return true;
  }

  /** When the query's rate source counts from, in ms; -1 if its only source is not one. */
  public static long rateStart(MicroBatchExecution query) {
    if (query.sources().size() != 1) {
      return -1;
    }
    SparkDataStream source = (SparkDataStream) query.sources().head();
    return source instanceof RateStreamMicroBatchStream
        ? ((RateStreamMicroBatchStream) source).creationTimeMs() : -1;
  }

  /** How many seconds of its rate source the query has read, its running batch counted; -1 as above. */
  public static long rateSeconds(MicroBatchExecution query) {
    Option offset = rateStart(query) < 0 ? Option.empty() : query.availableOffsets().get(query.sources().head());
    return offset.isEmpty() ? -1 : ((LongOffset) offset.get()).offset();
  }

  private static boolean wantsFlush(IncrementalExecution last, SparkPlan plan, long watermark) {
    if (statefulNodes(plan, false) < 2 || statefulNodes(plan, true) == 0 || !isWatched(plan)) {
      // Asked of the nodes themselves, where all have the watermark as it is: asking the execution would fix the next
      // batch's watermark for good.
      return nodeWantsFlush(plan, watermark);
    }
    OffsetSeqMetadata next =
        OffsetSeqMetadata$.MODULE$.apply(watermark, System.currentTimeMillis(), Map$.MODULE$.empty());
    return last.shouldRunAnotherBatch(next);
  }

  private static boolean nodeWantsFlush(SparkPlan plan, long watermark) {
    if (plan instanceof StateStoreWriter) {
      return ((StateStoreWriter) plan).shouldRunAnotherBatch(watermark);
    }
    Iterator children = plan.children().iterator();
    while (children.hasNext()) {
      if (nodeWantsFlush((SparkPlan) children.next(), watermark)) {
        return true;
      }
    }
    return false;
  }

  /** Whether Spark itself moves its watermark. */
  private static boolean isWatched(SparkPlan plan) {
    if (plan instanceof EventTimeWatermarkExec && !PlanProbe.isNever(((EventTimeWatermarkExec) plan).delay())) {
      return true;
    }
    Iterator children = plan.children().iterator();
    while (children.hasNext()) {
      if (isWatched((SparkPlan) children.next())) {
        return true;
      }
    }
    return false;
  }

  /** How many nodes keep state; or of these, how many do not aggregate. */
  private static int statefulNodes(SparkPlan plan, boolean others) {
    int found = plan instanceof StateStoreWriter && !(others && plan instanceof StateStoreSaveExec) ? 1 : 0;
    Iterator children = plan.children().iterator();
    while (children.hasNext()) {
      found += statefulNodes((SparkPlan) children.next(), others);
    }
    return found;
  }

  private static long rowsRead(SparkPlan plan) {
    if (plan.children().isEmpty()) {
      return metric(plan, "numOutputRows");
    }
    long rows = 0;
    Iterator children = plan.children().iterator();
    while (children.hasNext()) {
      rows += rowsRead((SparkPlan) children.next());
    }
    return rows;
  }

  /** A metric of all nodes that have it. */
  private static long sum(SparkPlan plan, String name) {
    long rows = metric(plan, name);
    Iterator children = plan.children().iterator();
    while (children.hasNext()) {
      rows += sum((SparkPlan) children.next(), name);
    }
    return rows;
  }

  private static long metric(SparkPlan plan, String name) {
    Option found = plan.metrics().get(name);
    if (found.isEmpty()) {
      return 0;
    }
    // As its base class: SQLMetric has a second, synthetic value() that the compiler cannot tell apart.
    Object value = ((AccumulatorV2) found.get()).value();
    return ((Long) value).longValue();
  }
}
