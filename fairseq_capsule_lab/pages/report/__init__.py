"""One page that compares evaluated runs: `systems` reads them, `comparison` scores them, `page` shows the scores."""
