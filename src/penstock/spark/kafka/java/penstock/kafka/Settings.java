package penstock.kafka;

import java.util.Iterator;
import java.util.Map;
import scala.collection.immutable.Map$;

/** Settings as Spark's connector takes them. */
class Settings {
  static scala.collection.immutable.Map scala(Map settings) {
    scala.collection.immutable.Map made = (scala.collection.immutable.Map) Map$.MODULE$.empty();
    Iterator entries = settings.entrySet().iterator();
    while (entries.hasNext()) {
      Map.Entry entry = (Map.Entry) entries.next();
      made = (scala.collection.immutable.Map) made.updated(entry.getKey(), entry.getValue());
    }
    return made;
  }
}
