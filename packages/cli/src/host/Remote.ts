/** The server that a command uses in place of the database. Spec: CL-303 in specs/cli.md. */
import { Context, Either } from "effect"
import { UsageError } from "../support/Errors.ts"

export interface Server {
  readonly url: string
  readonly token: string
}

/** The server, if one is named. */
export class Remote extends Context.Reference<Remote>()("@daybook/cli/Remote", {
  defaultValue: (): Server | undefined => undefined
}) {}

/** What the words before the verb say, and the words of the verb. */
export interface Named {
  /** In place of `DAYBOOK_DB`. */
  readonly database: string | undefined
  readonly server: Server | undefined
  readonly words: ReadonlyArray<string>
}

/**
 * `--server URL` and `--token TOKEN`, or `--database PLACE`, precede the verb; `DAYBOOK_SERVER`, `DAYBOOK_TOKEN` and
 * `DAYBOOK_DB` replace them.
 */
export const named = (
  words: ReadonlyArray<string>,
  env: Readonly<Record<string, string | undefined>>
): Either.Either<Named, UsageError> => {
  const given: { database?: string; server?: string | undefined; token?: string | undefined } = {
    server: env["DAYBOOK_SERVER"],
    token: env["DAYBOOK_TOKEN"]
  }
  const wrong = (message: string) => Either.left(new UsageError({ message }))
  let rest = words
  for (;;) {
    const [, name, value] = /^--(database|server|token)(?:=(.*))?$/s.exec(rest[0] ?? "") ?? []
    if (name !== "database" && name !== "server" && name !== "token") break
    const text = value ?? rest[1]
    if (text === undefined || text === "") return wrong(`--${name}: a value is missing`)
    given[name] = text
    rest = rest.slice(value === undefined ? 2 : 1)
  }
  const { database, server = "", token = "" } = given
  if (server === "") return Either.right({ database, server: undefined, words: rest })
  if (database !== undefined) return wrong("a server has its own database: give --database or --server")
  if (!URL.canParse(server) || !/^https?:$/.test(new URL(server).protocol)) {
    return wrong("--server: expected an address such as http://127.0.0.1:4310")
  }
  if (token === "")
    return wrong("the server needs a token: DAYBOOK_TOKEN, or --token; daybook token makes one on the server's machine")
  return Either.right({ database, server: { url: server.replace(/\/+$/, ""), token }, words: rest })
}
