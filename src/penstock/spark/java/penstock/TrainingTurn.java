package penstock;

import java.util.ArrayList;
import java.util.Arrays;
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
      ArrayList found = new ArrayList();
      if (!this.requests[i].isNullAt(place)) {
        addAll(this.requests[i].getArray(place), found);
      }
      examples.add(found);
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

  private void addAll(ArrayData rows, List found) {
    for (int i = 0; i < rows.numElements(); i++) {
      if (!rows.isNullAt(i)) {
        add(rows.getStruct(i, asked.size()), found);
      }
    }
  }

  /** Unless a value is null, or its class is not among those that are looked for. */
  private void add(InternalRow row, List found) {
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
      found.add(new Instance(label, 1.0, new DenseVector(features)));
    }
  }

  private Object value(InternalRow row, int name) {
    return row.get(places[name], asked.apply(places[name]).dataType());
  }

  private static double number(Object value) {
    return value instanceof Decimal ? ((Decimal) value).toDouble() : ((Number) value).doubleValue();
  }

  /** A regression for each request, or one for all; `features` are their names as JSON. */
  public Dataset regressions(List features, double regularisation, boolean shared, List carry) {
    return answers(new LeastSquares(session.sparkContext(), features, regularisation), shared, carry);
  }

  /** The same with trees; `labels` are the classes as JSON. */
  public Dataset trees(List features, List labels, int depth, int bins, boolean shared, List carry) {
    JavaSparkContext context = JavaSparkContext.fromSparkContext(session.sparkContext());
    return answers(new TreeFit(context, features, labels, depth, bins), shared, carry);
  }

  /** The columns `carry` of each request, and its payload. */
  private Dataset answers(ModelFit fit, boolean shared, List carry) {
    UTF8String[] payloads = shared ? ofAll(fit) : ofEach(fit);
    int[] kept = new int[carry.size()];
    StructType columns = new StructType();
    for (int i = 0; i < kept.length; i++) {
      kept[i] = schema.fieldIndex((String) carry.get(i));
      columns = columns.add(schema.apply(kept[i]));
    }
    ArrayList answers = new ArrayList();
    for (int i = 0; i < requests.length; i++) {
      Object[] values = new Object[kept.length + 1];
      for (int k = 0; k < kept.length; k++) {
        values[k] = get(requests[i], kept[k]);
      }
      values[kept.length] = payloads[i];
      answers.add(new GenericInternalRow(values));
    }
    Seq output = DataTypeUtils.toAttributes(columns.add("payload", DataTypes.StringType));
    Seq rows = CollectionConverters.asScala((Iterable) answers).toSeq();
    return Dataset$.MODULE$.ofRows(session, new LocalRelation(output, rows, false, Option.empty()));
  }

  private UTF8String[] ofEach(ModelFit fit) {
    UTF8String[] payloads = new UTF8String[requests.length];
    for (int i = 0; i < payloads.length; i++) {
      List rows = (List) examples.get(i);
      payloads[i] = UTF8String.fromString(said(fit, rows) + "}");
    }
    return payloads;
  }

  private UTF8String[] ofAll(ModelFit fit) {
    ArrayList all = new ArrayList();
    for (int i = 0; i < requests.length; i++) {
      all.addAll((List) examples.get(i));
    }
    UTF8String[] payloads = new UTF8String[requests.length];
    String said = said(fit, all) + ",\"requests\":" + requests.length + "}";
    Arrays.fill(payloads, UTF8String.fromString(said));
    return payloads;
  }

  private static String said(ModelFit fit, List rows) {
    return "{\"model\":" + (rows.isEmpty() ? "null" : fit.of(rows)) + ",\"rows\":" + rows.size();
  }

  private Object get(InternalRow request, int place) {
    return request.isNullAt(place) ? null : request.get(place, schema.apply(place).dataType());
  }
}
