/** What the log of a released version comes to, byte for byte: the files of a session change for nobody unasked. */
import { readFileSync, writeFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { addressOf } from "../../packages/files/src/layout/Layout.ts"
import { valueFiles } from "../../packages/files/src/render/Values.ts"
import { folded, golden, textsFrom } from "./support/Logs.ts"

const lines = (rows: ReadonlyArray<object>): string => rows.map((row) => `${JSON.stringify(row)}\n`).join("")

const filesOf = (version: string): ReadonlyMap<string, string> => {
  const log = golden(version)
  const { events, messages, state } = folded(log)
  const address = addressOf({ id: state.sessionID, agent: state.firstAgent }, state.address, 1000)
  if (address === undefined) throw new Error("the golden log has an address that is kept")
  const values = valueFiles(state, address, textsFrom(log))
  return new Map([["messages.jsonl", lines(messages)], ["events.jsonl", lines(events)], ...values])
}

for (const version of ["0.1.0"]) {
  it(`FL-8: the log of release ${version} comes to the files that were written then`, () => {
    for (const [name, content] of filesOf(version)) {
      const url = new URL(`./golden/${version}/${name}`, import.meta.url)
      if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(url, content)
      assert.strictEqual(content, readFileSync(url, "utf8"), name)
    }
  })
}
