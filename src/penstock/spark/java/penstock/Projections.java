package penstock;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.LogicalRDD;
import scala.collection.immutable.Seq;

/** The expressions of a frame that only selects from a template, to be applied row by row on an executor. */
public class Projections implements Serializable {
  private final List levels = new ArrayList();
  private final int width;
  private transient UnsafeProjection[] compiled;

  public Projections(Dataset selected) {
    LogicalPlan plan = ((org.apache.spark.sql.classic.Dataset) selected).queryExecution().optimizedPlan();
    width = plan.output().size();
    while (plan instanceof Project) {
      Project project = (Project) plan;
      levels.add(0, new Seq[] {project.projectList(), project.child().output()});
      plan = project.child();
    }
    if (!(plan instanceof LogicalRDD)) {
      throw new IllegalArgumentException(
          "a step must be made of expressions over one row and its state, but needs " + plan.nodeName());
    }
  }

  public int width() {
    return width;
  }

  /** The result, valid until the next call. */
  public UnsafeRow of(InternalRow row) {
    if (compiled == null) {
      compiled = new UnsafeProjection[levels.size()];
      for (int i = 0; i < compiled.length; i++) {
        Seq[] level = (Seq[]) levels.get(i);
        compiled[i] = (UnsafeProjection) GenerateUnsafeProjection$.MODULE$.generate(level[0], level[1]);
        compiled[i].initialize(0);
      }
    }
    InternalRow result = row;
    for (int i = 0; i < compiled.length; i++) {
      result = compiled[i].apply(result);
    }
    return (UnsafeRow) result;
  }
}
