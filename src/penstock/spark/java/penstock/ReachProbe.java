package penstock;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.util.Properties;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.rdd.RDD;
import org.apache.spark.util.CallSite;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.List;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Range$;
import scala.runtime.AbstractFunction2;

/** Asks executors whether they read what the driver has written to a folder, and lets them write there too. */
public class ReachProbe extends AbstractFunction2 implements Serializable {
  private final String folder;
  private final String token;

  private ReachProbe(String folder, String token) {
    this.folder = folder;
    this.token = token;
  }

  /** `executors` are lines of "id host"; a line of "id reads writes" for each one that was asked. */
  public static String ask(SparkContext spark, String executors, String folder, String token) {
    String[] lines = executors.split("\n");
    List wanted = Nil$.MODULE$;
    for (int i = lines.length - 1; i >= 0; i--) {
      int space = lines[i].indexOf(' ');
      String place = "executor_" + lines[i].substring(space + 1) + "_" + lines[i].substring(0, space);
      wanted = wanted.prepended(new Tuple2(place, Nil$.MODULE$.prepended(place)));
    }
    RDD tasks = spark.makeRDD(wanted, scala.reflect.ClassTag$.MODULE$.apply(String.class));
    Answers answers = new Answers();
    spark.dagScheduler().runJob(
        tasks,
        new ReachProbe(folder, token),
        Range$.MODULE$.apply(0, lines.length),
        new CallSite("reach", "reach"),
        answers,
        // Not the thread's own: it may still have the pool of a stage, whose time this is not.
        new Properties());
    return answers.all.toString();
  }

  public Object apply(Object task, Object rows) {
    String id = SparkEnv.get().executorId();
    boolean reads = new File(folder, token).exists();
    boolean writes = false;
    try {
      FileOutputStream out = new FileOutputStream(new File(folder, token + "-" + id));
      out.close();
      writes = true;
    } catch (IOException refused) {
      writes = false;
    }
    return id + " " + reads + " " + writes;
  }

  private static class Answers extends AbstractFunction2 {
    private final StringBuffer all = new StringBuffer();

    public Object apply(Object partition, Object answer) {
      all.append(answer).append('\n');
      return scala.runtime.BoxedUnit.UNIT;
    }
  }
}
