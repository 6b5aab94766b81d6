package penstock;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation;
import scala.Option;
import scala.collection.Iterator;

/** What the analysed plan of a stage says and its JSON does not. */
public class PlanProbe {
  /**
   * "delay-in-ms column" if the plan has one watermark, on a column as it stands in the source and with
   * no filter in between, so that the greatest event time is known before the rows are read; else "".
   */
  public static String soleWatermark(LogicalPlan plan) {
    if (count(plan) != 1) {
      return "";
    }
    EventTimeWatermark node = find(plan);
    LogicalPlan below = node.child();
    while (below instanceof Project || below instanceof Repartition || below instanceof SubqueryAlias) {
      below = (LogicalPlan) below.children().head();
    }
    if (!below.children().isEmpty() || !has(below, node.eventTime())) {
      return "";
    }
    return EventTimeWatermark$.MODULE$.getDelayMs(node.delay()) + " " + node.eventTime().name();
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

  private static boolean has(LogicalPlan leaf, Attribute wanted) {
    Iterator output = leaf.output().iterator();
    while (output.hasNext()) {
      if (((Attribute) output.next()).exprId().equals(wanted.exprId())) {
        return true;
      }
    }
    return false;
  }

  private static int count(LogicalPlan plan) {
    int found = plan instanceof EventTimeWatermark ? 1 : 0;
    Iterator children = plan.children().iterator();
    while (children.hasNext()) {
      found += count((LogicalPlan) children.next());
    }
    return found;
  }

  private static EventTimeWatermark find(LogicalPlan plan) {
    if (plan instanceof EventTimeWatermark) {
      return (EventTimeWatermark) plan;
    }
    Iterator children = plan.children().iterator();
    while (children.hasNext()) {
      EventTimeWatermark found = find((LogicalPlan) children.next());
      if (found != null) {
        return found;
      }
    }
    return null;
  }
}
