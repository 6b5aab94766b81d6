package penstock;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.ml.feature.Instance;
import org.apache.spark.ml.linalg.DenseVector;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction0;

/**
 * The requests of a turn and the rows that they ask for, brought to the driver once. MLlib's solvers are given them as
 * they are: the DataFrames that its estimators ask for are planned for longer than some hundred rows are fitted.
 */
public class TrainingTurn {
  private final SparkSession session;
  private final StructType schema;
  private final InternalRow[] requests;
  private final StructType asked;
  private final int[] places;
  private final List classes;
  private final ArrayList examples = new ArrayList();

  /** `names` are the features and, at last, the label: a number, or one of `classes` where there are any. */
  public TrainingTurn(Dataset requests, String rows, List names, List classes) {
    this.session = (SparkSession) requests.sparkSession();
    this.schema = requests.schema();
    this.requests = collected(((org.apache.spark.sql.classic.Dataset) requests).queryExecution());
    int place = schema.fieldIndex(rows);
    this.asked = (StructType) ((ArrayType) schema.apply(place).dataType()).elementType();
    this.places = new int[names.size()];
    for (int i = 0; i < places.length; i++) {
      places[i] = asked.fieldIndex((String) names.get(i));
    }
    this.classes = classes;
    for (int i = 0; i < this.requests.length; i++) {
      if (!this.requests[i].isNullAt(place)) {
        addAll(this.requests[i].getArray(place));
      }
    }
  }

  /** As Spark has them: what makes objects of them for a program is found anew for each DataFrame, which costs milliseconds. */
  private static InternalRow[] collected(final QueryExecution plan) {
    return (InternalRow[]) SQLExecution$.MODULE$.withNewExecutionId(plan, Option.empty(), new AbstractFunction0() {
      public Object apply() {
        return plan.executedPlan().executeCollect();
      }
    });
  }

  private void addAll(ArrayData rows) {
    for (int i = 0; i < rows.numElements(); i++) {
      if (!rows.isNullAt(i)) {
        add(rows.getStruct(i, asked.size()));
      }
    }
  }

  /** Unless a value is null, or its class is not among those that are looked for. */
  private void add(InternalRow row) {
    for (int i = 0; i < places.length; i++) {
      if (row.isNullAt(places[i])) {
        return;
      }
    }
    double[] features = new double[places.length - 1];
    for (int i = 0; i < features.length; i++) {
      features[i] = number(value(row, i));
    }
    Object said = value(row, features.length);
    double label = classes.isEmpty() ? number(said) : (double) classes.indexOf(said.toString());
    if (classes.isEmpty() || label >= 0.0) {
      examples.add(new Instance(label, 1.0, new DenseVector(features)));
    }
  }

  private Object value(InternalRow row, int name) {
    return row.get(places[name], asked.apply(places[name]).dataType());
  }

  private static double number(Object value) {
    return value instanceof Decimal ? ((Decimal) value).toDouble() : ((Number) value).doubleValue();
  }

  public int requests() {
    return requests.length;
  }

  public int rows() {
    return examples.size();
  }

  /** The coefficients and, at last, the intercept, as JSON. */
  public String regression(double regularisation) {
    return LeastSquares.fit(context(), examples, regularisation);
  }

  /** The tree as JSON, with features and classes by number. */
  public String tree(int depth, int bins) {
    return new TreeFit(context(), examples, depth, bins, classes.size()).fit();
  }

  private JavaSparkContext context() {
    return JavaSparkContext.fromSparkContext(session.sparkContext());
  }

  /** The same payload for every request. */
  public Dataset answers(String payload) {
    int[] kept = {schema.fieldIndex("msgid"), schema.fieldIndex("arrived")};
    UTF8String said = UTF8String.fromString(payload);
    ArrayList answers = new ArrayList();
    for (int i = 0; i < requests.length; i++) {
      Object[] values = {get(requests[i], kept[0]), get(requests[i], kept[1]), said};
      answers.add(new GenericInternalRow(values));
    }
    StructType columns = new StructType().add(schema.apply(kept[0])).add(schema.apply(kept[1]));
    Seq output = DataTypeUtils.toAttributes(columns.add("payload", DataTypes.StringType));
    Seq rows = CollectionConverters.asScala((Iterable) answers).toSeq();
    return Dataset$.MODULE$.ofRows(session, new LocalRelation(output, rows, false, Option.empty()));
  }

  private Object get(InternalRow request, int place) {
    return request.isNullAt(place) ? null : request.get(place, schema.apply(place).dataType());
  }
}
