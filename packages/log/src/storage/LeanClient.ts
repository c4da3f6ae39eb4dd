/**
 * Runs the statements of a client without the span and the scope that `@effect/sql` gives each of them: they cost
 * several times as much as a short statement. A host that installed a tracer gets the spans.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import { TransactionConnection } from "@effect/sql/SqlClient"
import type * as SqlConnection from "@effect/sql/SqlConnection"
import type * as SqlError from "@effect/sql/SqlError"
import type { Statement } from "@effect/sql/Statement"
import { Context, Effect, Option, Predicate } from "effect"
import { isTraced } from "../support/Spans.ts"
import type { DirectConnection } from "./Connection.ts"

type Rows = Effect.Effect<ReadonlyArray<unknown>, SqlError.SqlError>

type Values = Statement<unknown>["values"]

const isStatement = (made: unknown): made is Statement<unknown> & { readonly commit: () => Rows } =>
  Predicate.hasProperty(made, "compile") && Predicate.hasProperty(made, "commit")

/**
 * The same client with lean statements. A statement runs directly on its transaction's connection, or on `connection`
 * while no transaction has reserved it: the driver is synchronous, so nothing can come between. Otherwise it waits as
 * the client's own statements do.
 */
export const lean = <Client extends SqlClient.SqlClient>(client: Client, connection: DirectConnection): Client => {
  /** Runs on the connection that is free for the fiber, or as usual if there is none or the host wants the span. */
  const directly = <A>(
    run: (at: SqlConnection.Connection) => Effect.Effect<A, SqlError.SqlError>,
    usual: () => Effect.Effect<A, SqlError.SqlError>
  ) =>
    Effect.withFiberRuntime<A, SqlError.SqlError>((fiber) => {
      if (isTraced(fiber)) return usual()
      const around = Context.getOption(fiber.currentContext, TransactionConnection)
      const at = Option.isSome(around) ? around.value[0] : connection.isReserved() ? undefined : connection
      return at === undefined ? usual() : run(at)
    })

  const shorten = (made: unknown): unknown => {
    if (!isStatement(made)) return made
    const usual = made.commit.bind(made)
    const commit = (): Rows => directly((at) => at.execute(...made.compile(), undefined), usual)
    const usualValues = (): Values => Reflect.get(Object.getPrototypeOf(made), "values", made)
    const values = directly((at) => at.executeValues(...made.compile()), usualValues)
    return Object.defineProperties(made, { commit: { value: commit }, values: { value: values } })
  }

  return new Proxy(client, {
    apply: (target, self, parameters) => shorten(Reflect.apply(target, self, parameters)),
    get: (target, key) => {
      if (key !== "unsafe") return Reflect.get(target, key)
      return (...parameters: Parameters<typeof client.unsafe>) => shorten(client.unsafe(...parameters))
    }
  })
}
