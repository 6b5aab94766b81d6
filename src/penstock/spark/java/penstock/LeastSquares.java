package penstock;

import java.util.List;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.ml.optim.WeightedLeastSquares;
import org.apache.spark.ml.optim.WeightedLeastSquares$;
import org.apache.spark.ml.optim.WeightedLeastSquaresModel;

/** What MLlib's LinearRegression solves normal equations with, and as it would; without its summary, which is a job more. */
final class LeastSquares {
  private static final int ITERATIONS = 100;
  private static final double TOLERANCE = 1e-6;

  private LeastSquares() {}

  /** The coefficients and, at last, the intercept, as JSON. In one part: a fit's work is small beside the cost of a task. */
  static String fit(JavaSparkContext context, List examples, double regularisation) {
    WeightedLeastSquares solver = new WeightedLeastSquares(
        true, regularisation, 0.0, true, true, WeightedLeastSquares$.MODULE$.$lessinit$greater$default$6(), ITERATIONS,
        TOLERANCE);
    WeightedLeastSquaresModel model =
        solver.fit(context.parallelize(examples, 1).rdd(), solver.fit$default$2(), solver.fit$default$3());
    StringBuilder text = new StringBuilder("[");
    double[] coefficients = model.coefficients().toArray();
    for (int i = 0; i < coefficients.length; i++) {
      text.append(coefficients[i]).append(',');
    }
    return text.append(model.intercept()).append(']').toString();
  }
}
