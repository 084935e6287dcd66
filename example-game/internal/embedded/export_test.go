package embedded

// TouchesTables is exported for its table test.
var TouchesTables = touchesTables
