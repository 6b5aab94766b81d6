package penstock;

/** A scan whose rows are exchanged below its plan at every turn, so that the plan itself stays the same. */
public interface Granted {}
