"""What every route stands on: who may come in, bodies, forms, errors, byte ranges, events, the OpenAPI document."""
