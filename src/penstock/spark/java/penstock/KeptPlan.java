package penstock;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.execution.CoalesceExec;
import org.apache.spark.sql.execution.CodegenSupport;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.UnionExec;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeWatermarkExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreRestoreExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreSaveExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters$;

/** What is made of the plan that all batches of a stage with state run over. */
final class KeptPlan {
  private KeptPlan() {}

  /**
   * The plan without nodes that watch event time, where Penstock says how far it has come: they would look at every
   * row for nothing, between stages of compiled code that are one without them. The same plan where a state asks its
   * input for the column that they mark, as deduplication does. To be called in the plan's session.
   */
  static SparkPlan unwatched(SparkPlan plan) {
    return marksItself(plan) ? withoutWatching(plan) : plan;
  }

  /** Whether all state is that of aggregations and joins, whose own columns carry what is known of event time. */
  private static boolean marksItself(SparkPlan plan) {
    boolean marks = !(plan instanceof StateStoreWriter) || plan instanceof StateStoreSaveExec
        || plan instanceof StreamingSymmetricHashJoinExec;
    Iterator children = plan.children().iterator();
    while (marks && children.hasNext()) {
      marks = marksItself((SparkPlan) children.next());
    }
    return marks;
  }

  private static SparkPlan withoutWatching(SparkPlan plan) {
    List children = new ArrayList();
    Iterator given = plan.children().iterator();
    while (given.hasNext()) {
      children.add(withoutWatching((SparkPlan) given.next()));
    }
    if (plan instanceof EventTimeWatermarkExec && PlanProbe.isNever(((EventTimeWatermarkExec) plan).delay())) {
      ProjectExec marked = new ProjectExec((Seq) plan.output(), (SparkPlan) children.get(0));
      // Without them Spark would take it for one that changes nothing, and its columns' marks would be lost.
      marked.copyTagsFrom(plan);
      return marked;
    }
    return withChildren(plan, children);
  }

  /**
   * The same plan with its files read in another number of tasks; null where it is not only that number which changes.
   * A node that watches event time forgets that there is one task, so that Spark plans around it. In the plan's session.
   */
  static SparkPlan inTasks(SparkPlan plan, int before, int tasks) {
    if (plan instanceof CoalesceExec && !isCoalesced(((CoalesceExec) plan).child())) {
      CoalesceExec read = (CoalesceExec) plan;
      return read.numPartitions() == before ? read.copy(tasks, read.child()) : null;
    }
    boolean forgets = plan instanceof EventTimeWatermarkExec && Math.min(before, tasks) == 1;
    if (forgets || plan instanceof FileSourceScanExec) {
      return null;
    }
    List children = new ArrayList();
    Iterator given = plan.children().iterator();
    while (given.hasNext()) {
      SparkPlan child = inTasks((SparkPlan) given.next(), before, tasks);
      if (child == null) {
        return null;
      }
      children.add(child);
    }
    return withChildren(plan, children);
  }

  private static boolean isCoalesced(SparkPlan plan) {
    boolean found = plan instanceof CoalesceExec;
    Iterator children = plan.children().iterator();
    while (!found && children.hasNext()) {
      found = isCoalesced((SparkPlan) children.next());
    }
    return found;
  }

  private static SparkPlan withChildren(SparkPlan plan, List children) {
    Seq all = CollectionConverters$.MODULE$.asScala(children).toSeq();
    return all.equals(plan.children()) ? plan : (SparkPlan) plan.withNewChildren(all);
  }

  /** Whether whole stages can read every row, so that only what state keeps is up to other code. */
  static boolean canBeWhole(SparkPlan plan) {
    boolean can = readsRows(plan) ? ((CodegenSupport) plan).supportCodegen() : isBetweenStages(plan);
    Iterator children = plan.children().iterator();
    while (can && children.hasNext()) {
      can = canBeWhole((SparkPlan) children.next());
    }
    return can;
  }

  /** Whether they do so in a plan that is ready to run. */
  static boolean isWhole(SparkPlan plan) {
    return isWhole(plan, false);
  }

  private static boolean isWhole(SparkPlan plan, boolean inStage) {
    boolean within = plan instanceof WholeStageCodegenExec || inStage && !(plan instanceof InputAdapter);
    boolean whole = within || !readsRows(plan) || plan instanceof InputAdapter;
    Iterator children = plan.children().iterator();
    while (whole && children.hasNext()) {
      whole = isWhole((SparkPlan) children.next(), within);
    }
    return whole;
  }

  /**
   * The same plan with code of whole stages only where rows are read one by one. Behind an aggregation there are few:
   * to write that code anew for each batch would take longer than they do.
   */
  static SparkPlan wholeWhereRead(SparkPlan plan) {
    if (plan instanceof WholeStageCodegenExec) {
      return isBehindAggregation(plan) ? withoutStage(((WholeStageCodegenExec) plan).child()) : plan;
    }
    List children = new ArrayList();
    Iterator given = plan.children().iterator();
    while (given.hasNext()) {
      children.add(wholeWhereRead((SparkPlan) given.next()));
    }
    return withChildren(plan, children);
  }

  /** The nodes of a whole stage as they are without one. */
  private static SparkPlan withoutStage(SparkPlan plan) {
    if (plan instanceof InputAdapter) {
      return wholeWhereRead(((InputAdapter) plan).child());
    }
    List children = new ArrayList();
    Iterator given = plan.children().iterator();
    while (given.hasNext()) {
      children.add(withoutStage((SparkPlan) given.next()));
    }
    return withChildren(plan, children);
  }

  /** Whether what a whole stage reads has been aggregated before. */
  private static boolean isBehindAggregation(SparkPlan plan) {
    boolean behind = plan instanceof InputAdapter && aggregates(plan);
    Iterator children = plan.children().iterator();
    while (!behind && children.hasNext()) {
      behind = isBehindAggregation((SparkPlan) children.next());
    }
    return behind;
  }

  private static boolean aggregates(SparkPlan plan) {
    boolean does = plan instanceof BaseAggregateExec;
    Iterator children = plan.children().iterator();
    while (!does && children.hasNext()) {
      does = aggregates((SparkPlan) children.next());
    }
    return does;
  }

  private static boolean readsRows(SparkPlan plan) {
    return plan instanceof CodegenSupport && !isBetweenStages(plan);
  }

  private static boolean isBetweenStages(SparkPlan plan) {
    return plan instanceof FileSourceScanExec || plan instanceof CoalesceExec || plan instanceof UnionExec
        || plan instanceof ShuffleExchangeExec || plan instanceof StateStoreRestoreExec
        || plan instanceof StateStoreSaveExec;
  }
}
