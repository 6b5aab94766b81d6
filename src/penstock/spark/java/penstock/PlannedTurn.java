package penstock;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;
import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern$;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CoalesceExec;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.GenerateExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.QueryExecution$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.UnionExec;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction0;

/**
 * The plan of a stage without state, optimized and planned once and run at every turn over other files.
 *
 * Only for plans that would come out the same whatever the files: scans, projections, filters, generators and
 * unions, without subqueries, and without the present time, which Spark writes into a plan as a constant.
 */
public class PlannedTurn extends QueryExecution {
  private final SparkPlan planned;

  private PlannedTurn(SparkSession session, LogicalPlan analyzed, SparkPlan planned) {
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
    if (analyzed.containsPattern(TreePattern$.MODULE$.CURRENT_LIKE())) {
      return null;
    }
    Dataset planned = Dataset$.MODULE$.ofRows(session, analyzed);
    SparkPlan plan = ((org.apache.spark.sql.classic.Dataset) planned).queryExecution().executedPlan();
    return isFixed(plan) ? plan : null;
  }

  /** The result of the plan for the files that are granted now. */
  public static Dataset now(SparkSession session, LogicalPlan analyzed, SparkPlan plan) {
    // What a plan has found out about its files, it keeps; its copy finds out anew, in the session active now.
    SparkSession.setActiveSession(session);
    PlannedTurn turn = new PlannedTurn(session, analyzed, (SparkPlan) plan.clone());
    return new org.apache.spark.sql.classic.Dataset(turn, ExpressionEncoder$.MODULE$.apply(analyzed.schema()));
  }

  /**
   * The same rows as an Arrow stream in a file, computed by this thread without a job: for turns so small that
   * the job would cost more than its rows.
   */
  public static void here(SparkSession session, SparkPlan plan, StructType schema, String file) throws IOException {
    SparkSession.setActiveSession(session);
    String zone = session.sessionState().conf().sessionLocalTimeZone();
    RDD rows = ((SparkPlan) plan.clone()).execute();
    Partition[] partitions = rows.partitions();
    // Handed on, but not made the thread's own: settings are those of the session, and blocks those of the driver.
    TaskContextImpl context = (TaskContextImpl) TaskContext$.MODULE$.empty();
    try {
      Iterator all = scala.collection.Iterator$.MODULE$.empty();
      for (int i = 0; i < partitions.length; i++) {
        all = all.concat(new Later(rows, partitions[i], context));
      }
      Files.write(Paths.get(file), arrow(all, schema, zone));
    } finally {
      context.markTaskCompleted(Option.empty());
    }
  }

  private static byte[] arrow(Iterator rows, StructType schema, String zone) {
    if (!rows.hasNext()) {
      return ArrowConverters$.MODULE$.createEmptyArrowBatch(schema, zone, true, false);
    }
    Iterator streams = ArrowConverters$.MODULE$.toBatchWithSchemaIterator(
        rows, schema, Long.MAX_VALUE, Long.MAX_VALUE, zone, true, false);
    return (byte[]) streams.next();
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

  private static boolean isFixed(SparkPlan plan) {
    boolean known = plan instanceof FileSourceScanExec || plan instanceof ProjectExec
        || plan instanceof FilterExec || plan instanceof GenerateExec || plan instanceof UnionExec
        || plan instanceof CoalesceExec || plan instanceof WholeStageCodegenExec
        || plan instanceof InputAdapter || plan instanceof ColumnarToRowExec;
    if (!known || !plan.subqueries().isEmpty()) {
      return false;
    }
    Iterator children = plan.children().iterator();
    while (children.hasNext()) {
      if (!isFixed((SparkPlan) children.next())) {
        return false;
      }
    }
    return true;
  }
}
