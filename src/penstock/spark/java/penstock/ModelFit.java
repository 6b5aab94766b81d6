package penstock;

import java.util.List;

/** How a model is found from examples, of which there is one at least. */
interface ModelFit {
  /** The model as JSON. */
  String of(List examples);
}
