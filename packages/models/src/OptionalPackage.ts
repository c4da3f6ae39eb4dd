/** Loads a module that needs an npm package which the application may leave out. Spec: MD-63. */
import { Effect, Predicate, Schema } from "effect"

/** The package is not installed. */
export class NotInstalled extends Schema.TaggedError<NotInstalled>("@daybook/models/NotInstalled")("NotInstalled", {
  name: Schema.String
}) {}

const isMissing = (error: unknown, name: string): boolean =>
  Predicate.hasProperty(error, "code") &&
  error.code === "ERR_MODULE_NOT_FOUND" &&
  Predicate.hasProperty(error, "message") &&
  String(error.message).includes(`'${name}'`)

/** Imports with `load`; fails if that needs the package `name` and it is not installed. */
export const importWith = <A>(name: string, load: () => Promise<A>): Effect.Effect<A, NotInstalled> =>
  Effect.catchAllDefect(Effect.promise(load), (error) =>
    isMissing(error, name) ? new NotInstalled({ name }) : Effect.die(error)
  )
