"""What every route promises: access, origins, bodies, answers, starting and stopping."""
