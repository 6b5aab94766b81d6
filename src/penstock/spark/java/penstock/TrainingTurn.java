package penstock;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.ml.feature.Instance;
import org.apache.spark.ml.linalg.DenseVector;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * The requests of a turn and the rows that they ask for, brought to the driver once. MLlib's solvers are given them as
 * they are: the DataFrames that its estimators ask for are planned for longer than some hundred rows are fitted.
 */
public class TrainingTurn {
  private final SparkSession session;
  private final StructType schema;
  private final List requests;
  private final ArrayList examples = new ArrayList();

  /** `names` are the features and, at last, the label: a number, or one of `classes` where there are any. */
  public TrainingTurn(Dataset requests, String rows, List names, List classes) {
    this.session = requests.sparkSession();
    this.schema = requests.schema();
    this.requests = requests.collectAsList();
    int place = schema.fieldIndex(rows);
    for (int i = 0; i < this.requests.size(); i++) {
      Row request = (Row) this.requests.get(i);
      if (!request.isNullAt(place)) {
        add(request.getList(place), names, classes);
      }
    }
  }

  private void add(List rows, List names, List classes) {
    int[] places = null;
    for (int i = 0; i < rows.size(); i++) {
      Row row = (Row) rows.get(i);
      if (row != null) {
        places = places == null ? placesOf(names, row.schema()) : places;
        add(row, places, classes);
      }
    }
  }

  private static int[] placesOf(List names, StructType schema) {
    int[] places = new int[names.size()];
    for (int i = 0; i < places.length; i++) {
      places[i] = schema.fieldIndex((String) names.get(i));
    }
    return places;
  }

  /** Unless a value is null, or its class is not among those that are looked for. */
  private void add(Row row, int[] places, List classes) {
    for (int i = 0; i < places.length; i++) {
      if (row.isNullAt(places[i])) {
        return;
      }
    }
    double[] features = new double[places.length - 1];
    for (int i = 0; i < features.length; i++) {
      features[i] = number(row.get(places[i]));
    }
    Object said = row.get(places[features.length]);
    double label = classes.isEmpty() ? number(said) : (double) classes.indexOf(said);
    if (classes.isEmpty() || label >= 0.0) {
      examples.add(new Instance(label, 1.0, new DenseVector(features)));
    }
  }

  private static double number(Object value) {
    return ((Number) value).doubleValue();
  }

  public int requests() {
    return requests.size();
  }

  public int rows() {
    return examples.size();
  }

  /** The coefficients and, at last, the intercept, as JSON. */
  public String regression(double regularisation) {
    return LeastSquares.fit(context(), examples, regularisation);
  }

  /** The tree as JSON, with features and classes by number. */
  public String tree(int depth, int bins, int classes) {
    return new TreeFit(context(), examples, depth, bins, classes).fit();
  }

  private JavaSparkContext context() {
    return JavaSparkContext.fromSparkContext(session.sparkContext());
  }

  /** The same payload for every request. */
  public Dataset answers(String payload) {
    int number = schema.fieldIndex("msgid");
    int arrived = schema.fieldIndex("arrived");
    ArrayList answers = new ArrayList();
    for (int i = 0; i < requests.size(); i++) {
      Row request = (Row) requests.get(i);
      answers.add(RowFactory.create(new Object[] {request.get(number), request.get(arrived), payload}));
    }
    StructType said = new StructType().add(schema.apply(number)).add(schema.apply(arrived));
    return session.createDataFrame(answers, said.add("payload", DataTypes.StringType));
  }
}
