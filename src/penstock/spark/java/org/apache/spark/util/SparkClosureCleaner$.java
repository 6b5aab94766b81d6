package org.apache.spark.util;

import org.apache.spark.SparkEnv$;
import org.apache.spark.SparkException;
import scala.Option;
import scala.collection.mutable.Map$;
import scala.reflect.ClassTag$;

/**
 * Stands before Spark's own class of that name. For every function of every batch Spark reads the class file it was
 * compiled into, looks through it, and sends the function through a serializer to see whether that can be done: about a
 * quarter of a small turn with state. Of Spark's own functions nothing is to be found out that way; all others are looked
 * at as before.
 */
public final class SparkClosureCleaner$ {
  public static final SparkClosureCleaner$ MODULE$ = new SparkClosureCleaner$();
  private static final String SPARKS_OWN = "org.apache.spark.";

  private SparkClosureCleaner$() {}

  public Object clean(Object closure, boolean checkSerializable, boolean cleanTransitively) throws SparkException {
    if (closure.getClass().getName().startsWith(SPARKS_OWN)) {
      return closure;
    }
    Option cleaned = ClosureCleaner$.MODULE$.clean(
        closure, cleanTransitively, (scala.collection.mutable.Map) Map$.MODULE$.empty());
    if (cleaned.isEmpty()) {
      return closure;
    }
    if (checkSerializable && SparkEnv$.MODULE$.get() != null) {
      check(cleaned.get());
    }
    return cleaned.get();
  }

  private static void check(Object closure) throws SparkException {
    try {
      SparkEnv$.MODULE$.get().closureSerializer().newInstance().serialize(closure, ClassTag$.MODULE$.AnyRef());
    } catch (Exception problem) {
      throw new SparkException("Task not serializable", problem);
    }
  }

  public boolean clean$default$2() {
    return true;
  }

  public boolean clean$default$3() {
    return true;
  }
}
