/**
 * A database whose write transactions can fail at any statement and record their statements. It wraps the real connection
 * of a transaction in a counter.
 */
import { SqlClient, SqlError } from "@effect/sql"
import { Context, Effect, Layer } from "effect"
import * as Identifiers from "../../packages/log/src/domain/Identifiers.ts"
import * as SqlEventLog from "../../packages/log/src/log/SqlEventLog.ts"
import { ConnectionId, type DirectConnection } from "../../packages/log/src/storage/Connection.ts"
import * as Database from "../../packages/log/src/storage/Database.ts"

type Connection = Effect.Effect.Success<SqlClient.SqlClient["reserve"]>

export interface Control {
  /** Decides before each statement of a transaction whether it fails. `index` counts from 1 since the last `start`. */
  fails: (index: number, text: string, parameters: ReadonlyArray<unknown>) => boolean
  /** The statements run since the last `start`. */
  ran: Array<string>
}

export class Faults extends Context.Tag("test/Faults")<Faults, Control>() {}

const broken = () =>
  new SqlError.SqlError({
    message: "Failed to execute statement",
    cause: Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR" })
  })

const guarded = (connection: Connection, control: Control): Connection => {
  const guard = <A>(text: string, parameters: ReadonlyArray<unknown>, run: () => Effect.Effect<A, SqlError.SqlError>) =>
    Effect.suspend((): Effect.Effect<A, SqlError.SqlError> => {
      control.ran.push(text)
      return control.fails(control.ran.length, text, parameters) ? broken() : run()
    })
  const guardNow = <A>(text: string, parameters: ReadonlyArray<unknown>, run: () => A): A => {
    control.ran.push(text)
    if (control.fails(control.ran.length, text, parameters)) throw broken()
    return run()
  }
  const { isReserved, statements } = connection as DirectConnection
  const direct: DirectConnection = {
    ...connection,
    isReserved,
    statements: {
      all: (text, parameters) => guardNow(text, parameters, () => statements.all(text, parameters)),
      run: (text, parameters) => guardNow(text, parameters, () => statements.run(text, parameters))
    },
    execute: (text, parameters, transform) =>
      guard(text, parameters, () => connection.execute(text, parameters, transform)),
    executeRaw: (text, parameters) => guard(text, parameters, () => connection.executeRaw(text, parameters)),
    executeValues: (text, parameters) => guard(text, parameters, () => connection.executeValues(text, parameters)),
    executeUnprepared: (text, parameters, transform) =>
      guard(text, parameters, () => connection.executeUnprepared(text, parameters, transform))
  }
  return direct
}

/** The event log on a file, with faults that the test controls. */
export const faultyLog = (filename: string, options: SqlEventLog.Options = {}) => {
  const control: Control = { fails: () => false, ran: [] }
  const faulty = Layer.effect(
    SqlClient.SqlClient,
    Effect.map(
      SqlClient.SqlClient,
      (sql) =>
        new Proxy(sql, {
          get: (target, property) => {
            const found: unknown = Reflect.get(target, property)
            if (property === "reserve") return Effect.map(target.reserve, (connection) => guarded(connection, control))
            return property === ConnectionId ? guarded(found as DirectConnection, control) : found
          }
        })
    )
  )
  const database = Layer.provideMerge(faulty, Database.layer({ filename }))
  return SqlEventLog.layer(options).pipe(
    Layer.provideMerge(Layer.mergeAll(database, Identifiers.layer, Layer.succeed(Faults, control)))
  )
}
