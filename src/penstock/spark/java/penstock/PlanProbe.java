package penstock;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.package$AttributeSeq;
import org.apache.spark.sql.catalyst.expressions.BindReferences$;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.TimeWindow$;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark$;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.CalendarInterval;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters$;

/** What the analysed plan of a stage says and its JSON does not. */
public class PlanProbe {
  private static final String WINDOW = TimeWindow$.MODULE$.marker();
  private static final long MOMENT = 1800000000000000L;
  private static final int NEVER_DAYS = 36500;

  /**
   * "delay-in-ms column" if the plan has one watermark, on a column as it stands in the source; else "". Where the
   * greatest event time of a batch must be known before its rows are read, there must be no filter in between. With
   * `several`, rows of one queue that are joined with each other at a time, or united, may have it more than once.
   */
  public static String soleWatermark(LogicalPlan plan, boolean driven, boolean several) {
    List nodes = new ArrayList();
    find(plan, nodes);
    if (nodes.size() > 1 && !(driven && several && joinsAtATime(plan))) {
      return "";
    }
    String sole = "";
    for (int i = 0; i < nodes.size(); i++) {
      EventTimeWatermark node = (EventTimeWatermark) nodes.get(i);
      String column = sourceColumn(node.child(), node.eventTime(), driven);
      String found = EventTimeWatermark$.MODULE$.getDelayMs(node.delay()) + " " + column;
      if (column == null || i > 0 && !found.equals(sole)) {
        return "";
      }
      sole = found;
    }
    return sole;
  }

  /**
   * Whether all joins of two streams have equal event times on both sides, such as windows: their rows leave with the
   * watermark that lets them go, and it holds behind them as before.
   */
  public static boolean joinsAtATime(LogicalPlan plan) {
    boolean joins = plan instanceof Join && plan.isStreaming() && streams(plan) > 1;
    if (joins && (((Join) plan).joinType() != Inner$.MODULE$ || ((Join) plan).condition().isEmpty()
        || !wantsEqualTimes((Join) plan, (Expression) ((Join) plan).condition().get()))) {
      return false;
    }
    Iterator children = plan.children().iterator();
    while (children.hasNext()) {
      if (!joinsAtATime((LogicalPlan) children.next())) {
        return false;
      }
    }
    return true;
  }

  private static int streams(LogicalPlan plan) {
    int found = 0;
    Iterator children = plan.children().iterator();
    while (children.hasNext()) {
      found += ((LogicalPlan) children.next()).isStreaming() ? 1 : 0;
    }
    return found;
  }

  private static boolean wantsEqualTimes(Join join, Expression condition) {
    if (condition instanceof And) {
      And both = (And) condition;
      return wantsEqualTimes(join, both.left()) || wantsEqualTimes(join, both.right());
    }
    if (!(condition instanceof EqualTo)) {
      return false;
    }
    Expression one = ((EqualTo) condition).left();
    Expression other = ((EqualTo) condition).right();
    return isEventTime(one, join.left()) && isEventTime(other, join.right())
        || isEventTime(one, join.right()) && isEventTime(other, join.left());
  }

  private static boolean isEventTime(Expression value, LogicalPlan side) {
    return value instanceof Attribute && ((Attribute) value).metadata().contains(EventTimeWatermark$.MODULE$.delayKey())
        && place(side, (Attribute) value) >= 0;
  }

  /** The name that a column has in the source, or in all of the sources, if it stands there as it is; else null. */
  private static String sourceColumn(LogicalPlan plan, Attribute wanted, boolean filtered) {
    if (plan.children().isEmpty()) {
      int place = place(plan, wanted);
      return place < 0 ? null : ((Attribute) plan.output().apply(place)).name();
    }
    if (filtered && plan instanceof Union) {
      int place = place(plan, wanted);
      String name = null;
      Iterator children = plan.children().iterator();
      while (place >= 0 && children.hasNext()) {
        LogicalPlan child = (LogicalPlan) children.next();
        String found = sourceColumn(child, (Attribute) child.output().apply(place), true);
        if (found == null || name != null && !name.equals(found)) {
          return null;
        }
        name = found;
      }
      return name;
    }
    boolean passes = plan instanceof Project || plan instanceof Repartition || plan instanceof SubqueryAlias
        || filtered && (plan instanceof Filter || plan instanceof Generate);
    LogicalPlan below = passes ? (LogicalPlan) plan.children().head() : null;
    return below == null || place(below, wanted) < 0 ? null : sourceColumn(below, wanted, filtered);
  }

  /**
   * "size slide offset" in microseconds of the plan's time windows; of windows over windows those that come last; "" if
   * there are none, or several that differ. Spark has made expressions of them that give the windows of a time: they
   * are asked. Windows end at the offset plus some slides.
   */
  public static String window(LogicalPlan plan) {
    List found = windowsOf(plan);
    if (found.isEmpty()) {
      Iterator children = plan.children().iterator();
      while (children.hasNext()) {
        String below = window((LogicalPlan) children.next());
        if (!below.isEmpty() && !found.contains(below)) {
          found.add(below);
        }
      }
    }
    return found.size() == 1 ? (String) found.get(0) : "";
  }

  private static List windowsOf(LogicalPlan plan) {
    List found = new ArrayList();
    if (plan instanceof Project) {
      Iterator columns = ((Project) plan).projectList().iterator();
      while (columns.hasNext()) {
        Expression column = (Expression) columns.next();
        if (column instanceof Alias && ((Alias) column).metadata().contains(WINDOW)) {
          add(found, Collections.singletonList(((Alias) column).child()), ((Project) plan).child());
        }
      }
    } else if (plan instanceof Expand) {
      Seq output = ((Expand) plan).output();
      for (int i = 0; i < output.size(); i++) {
        if (((Attribute) output.apply(i)).metadata().contains(WINDOW)) {
          add(found, column((Expand) plan, i), ((Expand) plan).child());
        }
      }
    }
    return found;
  }

  private static List column(Expand plan, int place) {
    List found = new ArrayList();
    Iterator projections = plan.projections().iterator();
    while (projections.hasNext()) {
      found.add(((Seq) projections.next()).apply(place));
    }
    return found;
  }

  /** Adds what the windows of one moment say: their length, and how far their starts are apart. */
  private static void add(List found, List windows, LogicalPlan child) {
    package$AttributeSeq input = new package$AttributeSeq(child.output());
    Object[] values = new Object[child.output().size()];
    for (int i = 0; i < values.length; i++) {
      boolean isTime = ((Attribute) child.output().apply(i)).dataType() instanceof TimestampType;
      values[i] = isTime ? Long.valueOf(MOMENT) : null;
    }
    GenericInternalRow row = new GenericInternalRow(values);
    long[] starts = new long[windows.size()];
    long size = 0;
    for (int i = 0; i < starts.length; i++) {
      Expression bound = (Expression) BindReferences$.MODULE$.bindReference((Expression) windows.get(i), input, false);
      InternalRow window = (InternalRow) bound.eval(row);
      if (window == null) {
        return;
      }
      starts[i] = window.getLong(0);
      size = window.getLong(1) - starts[i];
    }
    Arrays.sort(starts);
    long slide = starts.length > 1 ? starts[1] - starts[0] : size;
    if (size > 0 && slide > 0) {
      found.add(size + " " + slide + " " + (starts[0] + size) % slide);
    }
  }

  /**
   * The plan with its watermark put so far back that Spark never moves it by itself. A stage of one slot is told behind
   * it once more that there is one partition: the watermark's node forgets, and Spark would shuffle for nothing.
   */
  public static LogicalPlan withoutWatermarkOfItsOwn(LogicalPlan plan, boolean inOneTask) {
    if (plan instanceof EventTimeWatermark) {
      EventTimeWatermark node = (EventTimeWatermark) plan;
      CalendarInterval never = new CalendarInterval(0, NEVER_DAYS, 0L);
      LogicalPlan below = inOneTask ? notCoalesced(node.child()) : node.child();
      LogicalPlan driven = new EventTimeWatermark(node.nodeId(), node.eventTime(), never, below);
      return inOneTask ? new Repartition(1, false, driven) : driven;
    }
    List children = new ArrayList();
    Iterator given = plan.children().iterator();
    while (given.hasNext()) {
      children.add(withoutWatermarkOfItsOwn((LogicalPlan) given.next(), inOneTask));
    }
    return withChildren(plan, children);
  }

  /** Whether a watermark so far behind is one that Spark never moves. */
  static boolean isNever(CalendarInterval delay) {
    return delay.days == NEVER_DAYS;
  }

  private static LogicalPlan notCoalesced(LogicalPlan plan) {
    if (plan instanceof Repartition && !((Repartition) plan).shuffle()) {
      return notCoalesced(((Repartition) plan).child());
    }
    List children = new ArrayList();
    Iterator given = plan.children().iterator();
    while (given.hasNext()) {
      children.add(notCoalesced((LogicalPlan) given.next()));
    }
    return withChildren(plan, children);
  }

  private static LogicalPlan withChildren(LogicalPlan plan, List children) {
    Seq all = CollectionConverters$.MODULE$.asScala(children).toSeq();
    return all.equals(plan.children()) ? plan : (LogicalPlan) plan.withNewChildren(all);
  }

  /** An option of the plan's first streaming relation of that source name; "" if there is none. */
  public static String sourceOption(LogicalPlan plan, String source, String option) {
    if (plan instanceof StreamingRelation) {
      StreamingRelation relation = (StreamingRelation) plan;
      Option value = relation.dataSource().options().get(option);
      return relation.sourceName().equals(source) && !value.isEmpty() ? (String) value.get() : "";
    }
    if (plan instanceof StreamingRelationV2) {
      StreamingRelationV2 relation = (StreamingRelationV2) plan;
      String value = relation.extraOptions().get(option);
      return relation.sourceName().equals(source) && value != null ? value : "";
    }
    Iterator children = plan.children().iterator();
    while (children.hasNext()) {
      String value = sourceOption((LogicalPlan) children.next(), source, option);
      if (!value.isEmpty()) {
        return value;
      }
    }
    return "";
  }

  /** All options of the plan's one streaming relation of version 2; an empty map if there is none. */
  public static java.util.Map sourceOptions(LogicalPlan plan) {
    if (plan instanceof StreamingRelationV2) {
      return ((StreamingRelationV2) plan).extraOptions().asCaseSensitiveMap();
    }
    Iterator children = plan.children().iterator();
    while (children.hasNext()) {
      java.util.Map found = sourceOptions((LogicalPlan) children.next());
      if (!found.isEmpty()) {
        return found;
      }
    }
    return Collections.emptyMap();
  }

  /** Where a column stands in the output of a plan; -1 if it is not there. */
  private static int place(LogicalPlan plan, Attribute wanted) {
    for (int i = 0; i < plan.output().size(); i++) {
      if (((Attribute) plan.output().apply(i)).exprId().equals(wanted.exprId())) {
        return i;
      }
    }
    return -1;
  }

  private static void find(LogicalPlan plan, List found) {
    if (plan instanceof EventTimeWatermark) {
      found.add(plan);
    }
    Iterator children = plan.children().iterator();
    while (children.hasNext()) {
      find((LogicalPlan) children.next(), found);
    }
  }
}
