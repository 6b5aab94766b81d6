package penstock;

import java.util.HashMap;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.sql.api.java.UDF1;

/** What stands behind an id in a table of lines "id tab text"; null for an id that is not there. */
public class Lookup implements UDF1, Function {
  private final OncePerJvm table;
  private transient volatile HashMap found;

  public Lookup(OncePerJvm table) {
    this.table = table;
  }

  public Object call(Object argument) throws Exception {
    return argument instanceof String[] ? read((String[]) argument) : find((String) argument);
  }

  private Object find(String id) throws Exception {
    if (found == null) {
      found = (HashMap) table.get(this);
    }
    return id == null ? null : found.get(id);
  }

  private static HashMap read(String[] lines) {
    HashMap made = new HashMap();
    for (int i = 0; i < lines.length; i++) {
      int tab = lines[i].indexOf('\t');
      if (tab >= 0) {
        made.put(lines[i].substring(0, tab), lines[i].substring(tab + 1));
      }
    }
    return made;
  }
}
