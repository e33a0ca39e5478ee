"""What reproduces the papers and our own results in a clone: tables, claims, benchmarks, jobs of clusters, results."""
