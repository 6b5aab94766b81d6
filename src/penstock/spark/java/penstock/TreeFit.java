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
import org.apache.spark.ml.tree.LearningNode;
import org.apache.spark.ml.tree.LearningNode$;
import org.apache.spark.ml.tree.Node;
import org.apache.spark.ml.tree.Split;
import org.apache.spark.ml.tree.impl.BaggedPoint$;
import org.apache.spark.ml.tree.impl.DTStatsAggregator;
import org.apache.spark.ml.tree.impl.DecisionTreeMetadata;
import org.apache.spark.ml.tree.impl.RandomForest$;
import org.apache.spark.ml.tree.impl.TreePoint;
import org.apache.spark.ml.tree.impl.TreePoint$;
import org.apache.spark.mllib.tree.configuration.Strategy;
import org.apache.spark.mllib.tree.impurity.ImpurityCalculator;
import org.apache.spark.mllib.tree.model.ImpurityStats;
import org.apache.spark.mllib.tree.model.ImpurityStats$;
import org.apache.spark.rdd.RDD;
import scala.Option;
import scala.Option$;
import scala.Tuple2;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Set;
import scala.collection.immutable.Set$;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * A tree as MLlib's DecisionTreeClassifier grows it, of the same parts: its splits, its sums by bin, its choice of the
 * best split. MLlib runs a job for each level; here they are put together without any, unless the examples are so many
 * that MLlib would find the splits in a sample of them.
 */
final class TreeFit implements ModelFit {
  private static final long SEED = 1L;
  private static final int EXAMPLES_NOT_SAMPLED = 10000;

  private final JavaSparkContext context;
  private final List names;
  private final List classes;
  private final Strategy strategy;

  /** `names` and `classes` as JSON. */
  TreeFit(JavaSparkContext context, List names, List classes, int depth, int bins) {
    this.context = context;
    this.names = names;
    this.classes = classes;
    DecisionTreeClassifier asked = new DecisionTreeClassifier();
    asked.setMaxDepth(depth);
    asked.setMaxBins(bins);
    this.strategy = asked.getOldStrategy((Map) Map$.MODULE$.empty(), classes.size());
  }

  public String of(List examples) {
    DecisionTreeMetadata known = known(examples.size());
    StringBuilder text = new StringBuilder();
    write(examples.size() > EXAMPLES_NOT_SAMPLED ? byJobs(examples, known) : here(examples, known), text);
    return text.toString();
  }

  /** What MLlib would find by a job. */
  private DecisionTreeMetadata known(int examples) {
    int bins = Math.min(strategy.maxBins(), examples);
    int[] binsOfEach = new int[names.size()];
    Arrays.fill(binsOfEach, bins);
    return new DecisionTreeMetadata(
        names.size(), (long) examples, (double) examples, strategy.numClasses(), bins, (Map) Map$.MODULE$.empty(),
        (Set) Set$.MODULE$.empty(), binsOfEach, strategy.impurity(), strategy.quantileCalculationStrategy(),
        strategy.maxDepth(), strategy.minInstancesPerNode(), strategy.minWeightFractionPerNode(),
        strategy.minInfoGain(), 1, names.size());
  }

  /** In one part: a fit's work is small beside the cost of a task. */
  private Node byJobs(List examples, DecisionTreeMetadata known) {
    RDD rows = context.parallelize(examples, 1).rdd();
    Split[][] splits = RandomForest$.MODULE$.findSplits(rows, known, SEED);
    RDD points = TreePoint$.MODULE$.convertToTreeRDD(rows, splits, known);
    RDD weighted = BaggedPoint$.MODULE$.convertToBaggedRDD(points, 1.0, 1, false, new Weight(), SEED);
    Broadcast sent = context.broadcast(splits);
    try {
      DecisionTreeModel[] trees = RandomForest$.MODULE$.runBagged(
          weighted, known, sent, strategy, 1, "all", SEED, Option.empty(), Option.empty(),
          RandomForest$.MODULE$.runBagged$default$10());
      return trees[0].rootNode();
    } finally {
      sent.destroy();
    }
  }

  private Node here(List examples, DecisionTreeMetadata known) {
    Split[][] splits = splits(examples, known);
    List points = new ArrayList();
    for (int i = 0; i < examples.size(); i++) {
      points.add(binned((Instance) examples.get(i), splits));
    }
    LearningNode root = LearningNode$.MODULE$.emptyNode(1);
    grow(root, points, splits, known);
    return root.toNode(true);
  }

  /** The number of each value's bin, and at last the class. */
  private static int[] binned(Instance example, Split[][] splits) {
    int[] point = new int[splits.length + 1];
    for (int feature = 0; feature < splits.length; feature++) {
      double value = example.features().apply(feature);
      int bin = 0;
      while (bin < splits[feature].length && value > ((ContinuousSplit) splits[feature][bin]).threshold()) {
        bin++;
      }
      point[feature] = bin;
    }
    point[splits.length] = (int) example.label();
    return point;
  }

  private void grow(LearningNode node, List points, Split[][] splits, DecisionTreeMetadata known) {
    Tuple2 best = RandomForest$.MODULE$.binsToBestSplit(summed(points, known), splits, Option.empty(), node);
    ImpurityStats stats = (ImpurityStats) best._2();
    int level = LearningNode$.MODULE$.indexToLevel(node.id());
    node.stats_$eq(stats);
    node.isLeaf_$eq(stats.gain() <= 0.0 || level == known.maxDepth());
    if (node.isLeaf()) {
      return;
    }
    ContinuousSplit split = (ContinuousSplit) best._1();
    int feature = split.featureIndex();
    int last = Arrays.asList(splits[feature]).indexOf(split);
    List left = new ArrayList();
    List right = new ArrayList();
    for (int i = 0; i < points.size(); i++) {
      int[] point = (int[]) points.get(i);
      (point[feature] <= last ? left : right).add(point);
    }
    boolean ends = level + 1 == known.maxDepth();
    LearningNode yes = child(LearningNode$.MODULE$.leftChildIndex(node.id()), stats.leftImpurityCalculator(), ends);
    LearningNode no = child(LearningNode$.MODULE$.rightChildIndex(node.id()), stats.rightImpurityCalculator(), ends);
    node.split_$eq(Option$.MODULE$.apply(split));
    node.leftChild_$eq(Option$.MODULE$.apply(yes));
    node.rightChild_$eq(Option$.MODULE$.apply(no));
    if (!yes.isLeaf()) {
      grow(yes, left, splits, known);
    }
    if (!no.isLeaf()) {
      grow(no, right, splits, known);
    }
  }

  private static LearningNode child(int id, ImpurityCalculator seen, boolean ends) {
    boolean pure = Math.abs(seen.calculate()) < Math.ulp(1.0);
    return LearningNode$.MODULE$.apply(id, ends || pure, ImpurityStats$.MODULE$.getEmptyImpurityStats(seen));
  }

  private static DTStatsAggregator summed(List points, DecisionTreeMetadata known) {
    DTStatsAggregator sums = new DTStatsAggregator(known, Option.empty());
    for (int i = 0; i < points.size(); i++) {
      int[] point = (int[]) points.get(i);
      double label = (double) point[point.length - 1];
      for (int feature = 0; feature < point.length - 1; feature++) {
        sums.update(feature, point[feature], label, 1, 1.0);
      }
      sums.updateParent(label, 1, 1.0);
    }
    return sums;
  }

  private static Split[][] splits(List examples, DecisionTreeMetadata known) {
    Split[][] splits = new Split[known.numFeatures()][];
    for (int feature = 0; feature < splits.length; feature++) {
      double[] bounds = RandomForest$.MODULE$.findSplitsForContinuousFeature(
          CollectionConverters.asScala((Iterable) values(examples, feature)), known, feature);
      splits[feature] = new Split[bounds.length];
      for (int i = 0; i < bounds.length; i++) {
        splits[feature][i] = new ContinuousSplit(feature, bounds[i]);
      }
      known.setNumSplits(feature, bounds.length);
    }
    return splits;
  }

  /** Each with its weight before it. */
  private static List values(List examples, int feature) {
    ArrayList values = new ArrayList();
    for (int i = 0; i < examples.size(); i++) {
      Instance each = (Instance) examples.get(i);
      values.add(new Tuple2(Double.valueOf(each.weight()), Double.valueOf(each.features().apply(feature))));
    }
    return values;
  }

  private void write(Node node, StringBuilder text) {
    if (!(node instanceof InternalNode)) {
      text.append("{\"class\":").append(classes.get((int) node.prediction())).append('}');
      return;
    }
    InternalNode inner = (InternalNode) node;
    ContinuousSplit split = (ContinuousSplit) inner.split();
    text.append("{\"feature\":").append(names.get(split.featureIndex()));
    text.append(",\"at_most\":").append(split.threshold());
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
