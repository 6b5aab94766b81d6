package penstock;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.regex.Pattern;
import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder$;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.physical.ShufflePartitionIdPassThrough;
import org.apache.spark.sql.catalyst.trees.TreePattern$;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.AppendColumnsExec;
import org.apache.spark.sql.execution.CoalesceExec;
import org.apache.spark.sql.execution.DeserializeToObjectExec;
import org.apache.spark.sql.execution.ExpandExec;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.GenerateExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.LocalTableScanExec;
import org.apache.spark.sql.execution.PlanLater;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.QueryExecution$;
import org.apache.spark.sql.execution.SerializeFromObjectExec;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.UnionExec;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec;
import org.apache.spark.sql.execution.arrow.ArrowConverters;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.BaseStreamingDeduplicateExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeWatermarkExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.SessionWindowStateStoreRestoreExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.SessionWindowStateStoreSaveExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreRestoreExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreSaveExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.UpdateEventTimeColumnExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.flatmapgroupswithstate.FlatMapGroupsWithStateExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction0;

/**
 * The plan of a stage without state, optimized and planned once and run at every turn over other files.
 *
 * Only for plans that would come out the same whatever the files: scans, projections, filters, generators,
 * unions and rows handed out to tasks in rotation, without subqueries, and without the present time, which Spark writes into a plan as a constant.
 */
public class PlannedTurn extends QueryExecution {
  // Texts that stand for a moment, such as CAST('today' AS DATE), become constants when a plan is optimized.
  private static final Pattern MOMENT =
      Pattern.compile("\\(\\s*(now|today|tomorrow|yesterday)\\s*(,|\\)|as\\b)", Pattern.CASE_INSENSITIVE);

  // What a plan may read: rows that are granted for a turn, or rows in the driver's memory.
  private static final int GRANTED = 0;
  private static final int LOCAL = 1;
  static final int STREAM = 2;

  private final SparkPlan planned;

  PlannedTurn(SparkSession session, LogicalPlan analyzed, SparkPlan planned) {
    super(
        session,
        analyzed,
        QueryExecution$.MODULE$.$lessinit$greater$default$3(),
        QueryExecution$.MODULE$.$lessinit$greater$default$4(),
        QueryExecution$.MODULE$.$lessinit$greater$default$5(),
        QueryExecution$.MODULE$.$lessinit$greater$default$6(),
        QueryExecution$.MODULE$.$lessinit$greater$default$7(),
        QueryExecution$.MODULE$.$lessinit$greater$default$8());
    this.planned = planned;
  }

  public SparkPlan executedPlan() {
    return planned;
  }

  /** The physical plan to be run at every turn; null if each turn must be planned by itself. */
  public static SparkPlan once(SparkSession session, LogicalPlan analyzed) {
    if (!isTimeless(analyzed)) {
      return null;
    }
    Dataset frame = Dataset$.MODULE$.ofRows(session, analyzed);
    SparkPlan plan = prepared(session, ((org.apache.spark.sql.classic.Dataset) frame).queryExecution());
    return isMadeOf(GRANTED, plan) ? plan : null;
  }

  /** As Spark makes it ready to run, with the expressions that Penstock has better ones for. */
  private static SparkPlan prepared(SparkSession session, QueryExecution planned) {
    Option before = SparkSession.getActiveSession();
    SparkSession.setActiveSession(session);
    try {
      SparkPlan plan = JsonOfBytes.within((SparkPlan) planned.sparkPlan().clone());
      return QueryExecution$.MODULE$.prepareForExecution(planned.preparations(), plan);
    } finally {
      restore(before);
    }
  }

  /** Whether no constant of the plan hangs on when it is made: neither the present time nor the seed of a draw. */
  static boolean isTimeless(LogicalPlan analyzed) {
    return !analyzed.containsPattern(TreePattern$.MODULE$.CURRENT_LIKE()) && !isRandom(analyzed)
        && !MOMENT.matcher(analyzed.treeString(true, false, Integer.MAX_VALUE, false, false)).find();
  }

  /** Whether it draws at random: the seed is put in by analysis, and would be the same at every turn. */
  public static boolean isRandom(LogicalPlan analyzed) {
    return analyzed.containsPattern(TreePattern$.MODULE$.EXPRESSION_WITH_RANDOM_SEED());
  }

  /** The result of the plan for the files that are granted now. */
  public static Dataset now(SparkSession session, LogicalPlan analyzed, SparkPlan plan) {
    TurnThread.name(session);
    Option before = SparkSession.getActiveSession();
    SparkSession.setActiveSession(session);
    try {
      return dataset(new PlannedTurn(session, analyzed, ordered(copyOf(plan))));
    } finally {
      restore(before);
    }
  }

  /** The same, computed by this thread without a job when it is collected; what is made of it reads the files. */
  public static Dataset collected(SparkSession session, LogicalPlan analyzed, SparkPlan plan) {
    return dataset(new CollectedTurn(session, analyzed, plan));
  }

  private static Dataset dataset(PlannedTurn turn) {
    return new org.apache.spark.sql.classic.Dataset(turn, ExpressionEncoder$.MODULE$.apply(turn.analyzed().schema()));
  }

  /**
   * The same rows as an Arrow stream in a file, computed by this thread without a job: for turns so small that
   * the job would cost more than its rows.
   */
  public static void here(SparkSession session, SparkPlan plan, StructType schema, String file) throws IOException {
    TurnThread.name(session);
    Option before = SparkSession.getActiveSession();
    SparkSession.setActiveSession(session);
    // Handed on, but not made the thread's own: settings are those of the session, and blocks those of the driver.
    TaskContextImpl context = (TaskContextImpl) TaskContext$.MODULE$.empty();
    try {
      String zone = session.sessionState().conf().sessionLocalTimeZone();
      Files.write(Paths.get(file), arrow(rows(ordered(copyOf(plan)).execute(), context), schema, zone));
    } finally {
      restore(before);
      context.markTaskCompleted(Option.empty());
    }
  }

  /** Writes rows that lie in the driver's memory as `here` does; false, and nothing written, where they do not. */
  public static boolean hereIfLocal(SparkSession session, Dataset rows, String file) throws IOException {
    SparkPlan plan = ((org.apache.spark.sql.classic.Dataset) rows).queryExecution().executedPlan();
    if (!isMadeOf(LOCAL, plan)) {
      return false;
    }
    here(session, plan, rows.schema(), file);
    return true;
  }

  /** What a plan has found out about its files, it keeps; its copy finds out anew, in the session active now. */
  static SparkPlan copyOf(SparkPlan plan) {
    return (SparkPlan) plan.clone();
  }

  /** Rows of several files in the order of their grant, so that a stage further down sees them in it. */
  static SparkPlan ordered(SparkPlan plan) {
    order(plan, false);
    return plan;
  }

  private static void order(SparkPlan plan, boolean byOneTask) {
    FileSourceScanExec scan = plan instanceof FileSourceScanExec ? (FileSourceScanExec) plan : null;
    // An operator may read files of its own.
    if (scan != null && scan.relation().location() instanceof GrantedFiles) {
      ((GrantedFiles) scan.relation().location()).inOrder(scan.inputRDD().partitions(), byOneTask);
    }
    boolean below = byOneTask || (plan instanceof CoalesceExec && ((CoalesceExec) plan).numPartitions() == 1);
    Iterator children = plan.children().iterator();
    while (children.hasNext()) {
      order((SparkPlan) children.next(), below);
    }
  }

  static void restore(Option session) {
    if (session.isEmpty()) {
      SparkSession.clearActiveSession();
    } else {
      SparkSession.setActiveSession((SparkSession) session.get());
    }
  }

  static Iterator rows(RDD rows, TaskContext context) {
    Iterator all = scala.collection.Iterator$.MODULE$.empty();
    Partition[] partitions = rows.partitions();
    for (int i = 0; i < partitions.length; i++) {
      all = all.concat(new Later(rows, partitions[i], context));
    }
    return all;
  }

  private static byte[] arrow(Iterator rows, StructType schema, String zone) {
    if (!rows.hasNext()) {
      return ArrowConverters$.MODULE$.createEmptyArrowBatch(schema, zone, true, false);
    }
    ArrowConverters.ArrowBatchWithSchemaIterator streams = ArrowConverters$.MODULE$.toBatchWithSchemaIterator(
        rows, schema, Long.MAX_VALUE, Long.MAX_VALUE, zone, true, false);
    try {
      return (byte[]) streams.next();
    } finally {
      // Outside of a task nobody else frees its memory, which is not the heap's.
      streams.close();
    }
  }

  /** The rows of a partition, which is opened when it is come to. */
  private static class Later extends AbstractFunction0 {
    private final RDD rows;
    private final Partition partition;
    private final TaskContext context;

    Later(RDD rows, Partition partition, TaskContext context) {
      this.rows = rows;
      this.partition = partition;
      this.context = context;
    }

    public Object apply() {
      return rows.iterator(partition, context);
    }
  }

  /** Rows handed out to tasks in rotation: a plan of any files has it. */
  private static boolean isDealt(SparkPlan plan) {
    return plan instanceof ShuffleExchangeExec && plan.outputPartitioning() instanceof ShufflePartitionIdPassThrough;
  }

  /** Whether it is made of these leaves, with rows worked on one by one; of a stream, also with state. */
  static boolean isMadeOf(int leaves, SparkPlan plan) {
    boolean known = plan instanceof ProjectExec || plan instanceof FilterExec || plan instanceof GenerateExec
        || plan instanceof UnionExec || plan instanceof CoalesceExec || plan instanceof WholeStageCodegenExec
        || plan instanceof InputAdapter || plan instanceof ColumnarToRowExec
        || (leaves == LOCAL ? plan instanceof LocalTableScanExec : isDealt(plan) || isGranted(plan))
        || (leaves == STREAM && isOfAStream(plan));
    if (!known || !plan.subqueries().isEmpty()) {
      return false;
    }
    Iterator children = plan.children().iterator();
    while (children.hasNext()) {
      if (!isMadeOf(leaves, (SparkPlan) children.next())) {
        return false;
      }
    }
    return true;
  }

  private static boolean isGranted(SparkPlan plan) {
    return plan instanceof FileSourceScanExec
        || (plan instanceof BatchScanExec && ((BatchScanExec) plan).scan() instanceof Granted);
  }

  /** State, its watermark, and what Spark puts around them. Not joins with a table: rows choose how they are made. */
  private static boolean isOfAStream(SparkPlan plan) {
    return plan instanceof StateStoreRestoreExec || plan instanceof StateStoreSaveExec
        || plan instanceof SessionWindowStateStoreRestoreExec || plan instanceof SessionWindowStateStoreSaveExec
        || plan instanceof FlatMapGroupsWithStateExec || plan instanceof BaseStreamingDeduplicateExec
        || plan instanceof StreamingSymmetricHashJoinExec || plan instanceof EventTimeWatermarkExec
        || plan instanceof UpdateEventTimeColumnExec || plan instanceof BaseAggregateExec
        || plan instanceof AppendColumnsExec || plan instanceof SerializeFromObjectExec
        || plan instanceof DeserializeToObjectExec || plan instanceof ExpandExec || plan instanceof SortExec
        || isEmpty(plan);
  }

  /** No rows, as of the state that a query begins with where none is given; Spark leaves it unplanned. */
  private static boolean isEmpty(SparkPlan plan) {
    LogicalPlan unplanned = plan instanceof PlanLater ? ((PlanLater) plan).plan() : null;
    return unplanned instanceof LocalRelation && ((LocalRelation) unplanned).data().isEmpty();
  }
}
