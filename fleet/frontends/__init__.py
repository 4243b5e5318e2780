"""Several processes that speak HTTP for one studio: connections come to all, takes and limits are one."""
