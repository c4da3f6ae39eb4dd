/** How long work waits for a connection to a database that is away. Files are never away. Spec: PG-16. */
import { Context, Duration } from "effect"

/** Ten seconds, as appends wait (PG-8). A door gives its requests less, so that who asks is told soon. */
export class Patience extends Context.Reference<Patience>()("@daybook/log/Patience", {
  defaultValue: (): Duration.Duration => Duration.seconds(10)
}) {}
