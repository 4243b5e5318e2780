"""Long work: a bounded queue for each kind, in threads or in processes that can be killed, each with a time limit."""
