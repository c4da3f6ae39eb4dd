/** The command: reads its words, tests a server, prints what holds. Spec: HT-68, HT-506 in specs/http.md. */
import { parseArgs } from "node:util"
import { laws } from "./Laws.ts"
import { holds, json, line, summary, verify } from "./Verdict.ts"

const help = `usage: conformance URL TOKEN [--read-token TOKEN] [--timeout SECONDS] [--json]

Tests over HTTP whether a server keeps the contract of Daybook's event streams, and prints a line for each clause. It creates
sessions and admits prompts that nothing runs: give it a server for tests, and a token with the scope prompt.

  --read-token TOKEN  a token with the scope read; without it, scopes are not tested
  --timeout SECONDS   how long all tests may take (default: 120); one that does not end is broken
  --json              one object a line: clause, says, result (ok, broken or untested), problem, milliseconds
  --help              this text

The exit code is 0 if no clause is broken, 1 if one is, and 2 if the words are wrong or nothing answers at URL.
`

export interface Output {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
}

const options = {
  "read-token": { type: "string" },
  timeout: { type: "string", default: "120" },
  json: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false }
} as const

const parsed = (words: ReadonlyArray<string>) => {
  const { positionals, values } = parseArgs({ args: [...words], options, allowPositionals: true })
  const [baseUrl = "", token = "", ...more] = positionals
  const seconds = Number(values.timeout)
  if (values.help) return { values, baseUrl, token, seconds }
  if (baseUrl === "" || token === "") throw new Error("give the URL of a server, and a token")
  if (more.length > 0) throw new Error(`unexpected argument: ${more[0]}`)
  if (!/^https?:\/\//.test(baseUrl) || !URL.canParse(baseUrl))
    throw new Error(`${baseUrl} is not the URL of a server, such as http://127.0.0.1:4310`)
  if (!(seconds > 0 && seconds <= 3_600)) throw new Error("--timeout takes seconds, from 1 to 3600")
  return { values, baseUrl: baseUrl.replace(/\/+$/, ""), token, seconds }
}

/** Whether something answers there at all. */
const unreachable = (baseUrl: string, milliseconds: number): Promise<string | undefined> =>
  fetch(`${baseUrl}/health`, { signal: AbortSignal.timeout(milliseconds) }).then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? String(error.cause ?? error.message) : String(error))
  )

export const run = async (words: ReadonlyArray<string>, { err, out }: Output): Promise<number> => {
  let given: ReturnType<typeof parsed>
  try {
    given = parsed(words)
  } catch (error) {
    err(`conformance: ${error instanceof Error ? error.message : String(error)}\n${help.split("\n", 1)[0]}\n`)
    return 2
  }
  const { baseUrl, seconds, token, values } = given
  if (values.help) {
    out(help)
    return 0
  }
  const why = await unreachable(baseUrl, Math.min(10_000, seconds * 1_000))
  if (why !== undefined) {
    err(`conformance: nothing answers at ${baseUrl}/health: ${why}\n`)
    return 2
  }
  const verdicts = await verify(
    laws,
    { baseUrl, token, readToken: values["read-token"] },
    {
      limit: seconds * 1_000,
      onVerdict: (verdict) => out(`${values.json ? JSON.stringify(json(verdict)) : line(verdict)}\n`)
    }
  )
  if (!values.json) out(`${summary(verdicts)}\n`)
  return holds(verdicts) ? 0 : 1
}
