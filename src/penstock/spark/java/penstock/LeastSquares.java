package penstock;

import java.util.List;
import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.ml.feature.Instance;
import org.apache.spark.ml.optim.WeightedLeastSquares;
import org.apache.spark.ml.optim.WeightedLeastSquares$;
import org.apache.spark.ml.optim.WeightedLeastSquaresModel;
import org.apache.spark.rdd.RDD;
import scala.Function2;
import scala.collection.Iterator;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** What MLlib's LinearRegression solves normal equations with, and as it would; without its summary, and without a job. */
final class LeastSquares implements ModelFit {
  private static final int ITERATIONS = 100;
  private static final double TOLERANCE = 1e-6;

  private final WeightedLeastSquares solver;
  private final Here here;
  private final List names;

  /** `names` are those of the features, as JSON. */
  LeastSquares(SparkContext context, List names, double regularisation) {
    this.solver = new WeightedLeastSquares(
        true, regularisation, 0.0, true, true, WeightedLeastSquares$.MODULE$.$lessinit$greater$default$6(), ITERATIONS,
        TOLERANCE);
    this.here = new Here(context);
    this.names = names;
  }

  public String of(List examples) {
    here.examples = examples;
    WeightedLeastSquaresModel model = solver.fit(here, solver.fit$default$2(), solver.fit$default$3());
    StringBuilder text = new StringBuilder("{\"coefficients\":{");
    double[] coefficients = model.coefficients().toArray();
    for (int i = 0; i < coefficients.length; i++) {
      text.append(i > 0 ? "," : "").append(names.get(i)).append(':').append(coefficients[i]);
    }
    return text.append("},\"intercept\":").append(model.intercept()).append('}').toString();
  }

  /** The solver asks for one sum over all examples: some hundred are added up here before a job would have begun. */
  private static final class Here extends RDD {
    private transient List examples;

    Here(SparkContext context) {
      super(context, (Seq) Nil$.MODULE$, ClassTag$.MODULE$.apply(Instance.class));
    }

    public Object treeAggregate(
        Object zero, Function2 add, Function2 merge, int depth, boolean onExecutor, ClassTag kind) {
      Object sum = zero;
      for (int i = 0; i < examples.size(); i++) {
        sum = add.apply(sum, examples.get(i));
      }
      return sum;
    }

    public Iterator compute(Partition part, TaskContext task) {
      throw new UnsupportedOperationException("examples are added up where they are, never by a task");
    }

    public Partition[] getPartitions() {
      return new Partition[0];
    }
  }
}
