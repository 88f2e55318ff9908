"""How good localmed is, measured: question sets, measures, statistics and reports."""
