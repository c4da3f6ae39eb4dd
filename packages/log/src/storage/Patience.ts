/** How long work waits for a connection to a database that is away. Files are never away. Spec: PG-16, PG-18. */
import { Context, Duration } from "effect"

/** Ten seconds by default, as for appends (PG-8). A server gives its requests less, so that a client gets its answer soon. */
export class Patience extends Context.Reference<Patience>()("@daybook/log/Patience", {
  defaultValue: (): Duration.Duration => Duration.seconds(10)
}) {}
