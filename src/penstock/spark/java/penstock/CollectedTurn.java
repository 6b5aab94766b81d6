package penstock;

import java.util.ArrayList;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LocalTableScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** A planned turn whose rows are computed by the thread that first asks for them, and kept: to collect them takes no job. */
final class CollectedTurn extends PlannedTurn {
  private final SparkSession session;
  private SparkPlan kept;

  CollectedTurn(SparkSession session, LogicalPlan analyzed, SparkPlan planned) {
    super(session, analyzed, planned);
    this.session = session;
  }

  public synchronized SparkPlan executedPlan() {
    if (kept == null) {
      kept = collect(super.executedPlan());
    }
    return kept;
  }

  private SparkPlan collect(SparkPlan plan) {
    Option before = SparkSession.getActiveSession();
    SparkSession.setActiveSession(session);
    // Not made the thread's own, as for PlannedTurn.here.
    TaskContextImpl context = (TaskContextImpl) TaskContext$.MODULE$.empty();
    try {
      ArrayList collected = new ArrayList();
      Iterator rows = rows(ordered(copyOf(plan)).execute(), context);
      while (rows.hasNext()) {
        // The iterator fills one row again and again.
        collected.add(((InternalRow) rows.next()).copy());
      }
      Seq all = CollectionConverters.asScala((Iterable) collected).toSeq();
      // A job over them has one task, as one over the files of a turn on one slot.
      return new LocalTableScanExec(plan.output(), all, Option.empty(), true);
    } finally {
      restore(before);
      context.markTaskCompleted(Option.empty());
    }
  }
}
