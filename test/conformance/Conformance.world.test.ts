/** The black-box suite: Daybook's server keeps it, and none of many servers that break a clause passes. */
import type { ServerResponse } from "node:http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { run } from "../../packages/conformance/src/command.ts"
import { type Law, laws, report, verify } from "../../packages/conformance/src/index.ts"
import { issue } from "../../packages/server/src/http/Tokens.ts"
import * as Rude from "../client/support/Rude.ts"
import { layer as served, Served, token } from "../server/http/support/ServedApi.ts"
import * as Broken from "./support/Broken.ts"
import { faults } from "./support/Faults.ts"

const readToken = issue(token, { scope: "read" })

/** Without those that wait for the server's own times. */
const quick: ReadonlyArray<Law> = laws.filter(({ slow }) => slow !== true)

const brokenIn = (
  tested: ReadonlyArray<Law>,
  baseUrl: string,
  options: Parameters<typeof verify>[2] = {}
): Effect.Effect<{ readonly clauses: ReadonlyArray<string>; readonly text: string }> =>
  Effect.map(
    Effect.promise(() => verify(tested, { baseUrl, token, readToken }, options)),
    (verdicts) => ({
      clauses: verdicts.flatMap(({ law, problem }) => (problem === undefined ? [] : [law.clause])),
      text: report(verdicts)
    })
  )

/** Runs the command, with what it printed. */
const command = (...words: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const printed = { out: "", err: "" }
    const code = await run(words, {
      out: (text) => void (printed.out += text),
      err: (text) => void (printed.err += text)
    })
    return { code, ...printed }
  })

// The suite sends wrong tokens, and runs often here.
layer(served({}, {}, { limits: { wrongTokens: 1_000_000 } }))("the conformance suite", (it) => {
  it.scoped("HT-68: Daybook's server keeps every clause of the suite, again too, and a proxy changes nothing", () =>
    Effect.gen(function* () {
      const { url } = yield* Served
      for (const baseUrl of [url, (yield* Broken.serve(url, {})).url]) {
        const { clauses, text } = yield* brokenIn(quick, baseUrl)
        assert.deepEqual(clauses, [], text)
      }
    })
  )

  for (const { clause, hangs, name, ...fault } of faults(token, readToken)) {
    it.scoped(`HT-506: a server that ${name} does not pass (${clause})`, () =>
      Effect.gen(function* () {
        const { url } = yield* Broken.serve((yield* Served).url, fault)
        const found = yield* brokenIn(
          quick.filter((law) => law.clause === clause),
          url,
          hangs === true ? { patience: 400 } : {}
        )
        assert.include(found.clauses, clause, found.text)
      })
    )
  }

  it.scoped("HT-507: a server that neither answers nor ends is broken, within the time that was given", () =>
    Effect.gen(function* () {
      for (const conduct of [
        () => {},
        (_number: number, response: ServerResponse) => Rude.streams(response),
        (_number: number, response: ServerResponse) =>
          void response.writeHead(200, { "content-length": "100" }).write("{")
      ]) {
        const { url } = yield* Rude.serve(conduct)
        const found = yield* brokenIn(quick, url, { patience: 100, limit: 500 })
        assert.lengthOf(found.clauses, quick.length, found.text)
        assert.include(found.text, "the time for all laws is over")
      }
    })
  )

  it.effect("HT-507: the command prints lines, or JSON, and its exit code says whether the server passes", () =>
    Effect.gen(function* () {
      const { url } = yield* Served
      const help = yield* command("--help")
      assert.deepInclude(help, { code: 0, err: "" })
      for (const word of ["--json", "--timeout", "--read-token", "exit code"]) assert.include(help.out, word)
      for (const words of [
        [],
        [url],
        ["nonsense", "t"],
        [url, "t", "more"],
        [url, "t", "--no"],
        [url, "t", "--timeout", "x"]
      ]) {
        const wrong = yield* command(...words)
        assert.deepInclude(wrong, { code: 2, out: "" })
        assert.match(wrong.err, /^conformance: .+\nusage: conformance URL TOKEN/)
      }
      const away = yield* command("http://127.0.0.1:1", "t")
      assert.strictEqual(away.code, 2)
      assert.match(away.err, /nothing answers at/)
      const wrong = yield* command(url, "wrong", "--json")
      assert.strictEqual(wrong.code, 1)
      const verdicts = wrong.out
        .trimEnd()
        .split("\n")
        .map((line): unknown => JSON.parse(line))
      assert.lengthOf(verdicts, laws.length)
      for (const verdict of verdicts) assert.containsAllKeys(verdict, ["clause", "says", "result", "milliseconds"])
    })
  )
})
