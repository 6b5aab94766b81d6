package penstock;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.ml.classification.DecisionTreeClassifier;
import org.apache.spark.ml.feature.Instance;
import org.apache.spark.ml.tree.ContinuousSplit;
import org.apache.spark.ml.tree.DecisionTreeModel;
import org.apache.spark.ml.tree.InternalNode;
import org.apache.spark.ml.tree.Node;
import org.apache.spark.ml.tree.Split;
import org.apache.spark.ml.tree.impl.BaggedPoint$;
import org.apache.spark.ml.tree.impl.DecisionTreeMetadata;
import org.apache.spark.ml.tree.impl.RandomForest$;
import org.apache.spark.ml.tree.impl.TreePoint;
import org.apache.spark.ml.tree.impl.TreePoint$;
import org.apache.spark.mllib.tree.configuration.Strategy;
import org.apache.spark.rdd.RDD;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Set;
import scala.collection.immutable.Set$;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * A tree as MLlib's DecisionTreeClassifier grows it, a job for each level. What that would find by three jobs more is
 * known here: how many examples and features there are, and what values a feature has.
 */
final class TreeFit {
  private static final long SEED = 1L;
  // Of more, MLlib finds the splits in a sample.
  private static final int EXAMPLES_NOT_SAMPLED = 10000;

  private final JavaSparkContext context;
  private final List examples;
  private final Strategy strategy;
  private final DecisionTreeMetadata known;

  TreeFit(JavaSparkContext context, List examples, int depth, int bins, int classes) {
    this.context = context;
    this.examples = examples;
    DecisionTreeClassifier asked = new DecisionTreeClassifier();
    asked.setMaxDepth(depth);
    asked.setMaxBins(bins);
    this.strategy = asked.getOldStrategy((Map) Map$.MODULE$.empty(), classes);
    this.known = known(((Instance) examples.get(0)).features().size());
  }

  private DecisionTreeMetadata known(int features) {
    int bins = Math.min(strategy.maxBins(), examples.size());
    int[] binsOfEach = new int[features];
    Arrays.fill(binsOfEach, bins);
    return new DecisionTreeMetadata(
        features, (long) examples.size(), (double) examples.size(), strategy.numClasses(), bins,
        (Map) Map$.MODULE$.empty(), (Set) Set$.MODULE$.empty(), binsOfEach, strategy.impurity(),
        strategy.quantileCalculationStrategy(), strategy.maxDepth(), strategy.minInstancesPerNode(),
        strategy.minWeightFractionPerNode(), strategy.minInfoGain(), 1, features);
  }

  /** The tree as JSON, with features and classes by number. In one part: a fit's work is small beside the cost of a task. */
  String fit() {
    RDD rows = context.parallelize(examples, 1).rdd();
    Split[][] splits =
        examples.size() > EXAMPLES_NOT_SAMPLED ? RandomForest$.MODULE$.findSplits(rows, known, SEED) : splits();
    RDD points = TreePoint$.MODULE$.convertToTreeRDD(rows, splits, known);
    RDD weighted = BaggedPoint$.MODULE$.convertToBaggedRDD(points, 1.0, 1, false, new Weight(), SEED);
    Broadcast sent = context.broadcast(splits);
    try {
      DecisionTreeModel[] trees = RandomForest$.MODULE$.runBagged(
          weighted, known, sent, strategy, 1, "all", SEED, Option.empty(), Option.empty(),
          RandomForest$.MODULE$.runBagged$default$10());
      StringBuilder text = new StringBuilder();
      write(trees[0].rootNode(), text);
      return text.toString();
    } finally {
      sent.destroy();
    }
  }

  private Split[][] splits() {
    Split[][] splits = new Split[known.numFeatures()][];
    for (int feature = 0; feature < splits.length; feature++) {
      double[] bounds = RandomForest$.MODULE$.findSplitsForContinuousFeature(
          CollectionConverters.asScala((Iterable) values(feature)), known, feature);
      splits[feature] = new Split[bounds.length];
      for (int i = 0; i < bounds.length; i++) {
        splits[feature][i] = new ContinuousSplit(feature, bounds[i]);
      }
      known.setNumSplits(feature, bounds.length);
    }
    return splits;
  }

  /** Each with its weight before it. */
  private List values(int feature) {
    ArrayList values = new ArrayList();
    for (int i = 0; i < examples.size(); i++) {
      Instance each = (Instance) examples.get(i);
      values.add(new Tuple2(Double.valueOf(each.weight()), Double.valueOf(each.features().apply(feature))));
    }
    return values;
  }

  private static void write(Node node, StringBuilder text) {
    if (!(node instanceof InternalNode)) {
      text.append("{\"class\":").append((int) node.prediction()).append('}');
      return;
    }
    InternalNode inner = (InternalNode) node;
    ContinuousSplit split = (ContinuousSplit) inner.split();
    text.append("{\"feature\":").append(split.featureIndex()).append(",\"at_most\":").append(split.threshold());
    text.append(",\"yes\":");
    write(inner.leftChild(), text);
    text.append(",\"no\":");
    write(inner.rightChild(), text);
    text.append('}');
  }

  private static final class Weight extends AbstractFunction1 implements Serializable {
    public Object apply(Object point) {
      return Double.valueOf(((TreePoint) point).weight());
    }
  }
}
