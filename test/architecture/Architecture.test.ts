import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { openFolds } from "./Folds.ts"
import { glossaryFaults } from "./Glossary.ts"
import { packagesFolder, readExports, readModule, readModules, readSources } from "./ImportGraph.ts"
import {
  backArrows,
  barrels,
  circles,
  folders,
  logDependencies,
  packages,
  strayClients,
  strayDependencies,
  strayStatements,
  unpromised
} from "./Laws.ts"
import { missingNames, statedOrders } from "./Page.ts"

const modules = readModules()

/** The modules with one more, as if somebody had added it. */
const withModule = (path: string, text: string) => [...modules, readModule(path, text)]

describe("the architecture", () => {
  it("AR-1: packages and folders import only what stands before them", () => {
    assert.deepStrictEqual(backArrows(modules), [])
    const upwards = 'import type { Sessions } from "../session/Sessions.ts"\n'
    assert.deepStrictEqual(backArrows(withModule("core/src/tool/New.ts", upwards)), [
      "packages/core/src/tool/New.ts:1 imports ../session/Sessions.ts"
    ])
    const across = 'export const a = 1\nexport type { Agent } from "@daybook/core/domain/Agent"\n'
    assert.deepStrictEqual(backArrows(withModule("log/src/store/New.ts", across)), [
      "packages/log/src/store/New.ts:2 imports @daybook/core/domain/Agent"
    ])
    assert.deepStrictEqual(backArrows(withModule("log/src/elsewhere/New.ts", 'import "../log/EventLog.ts"\n')), [
      "packages/log/src/elsewhere/New.ts:1 imports ../log/EventLog.ts"
    ])
  })

  it("AR-11: a module or style sheet has at most 600 lines, generated data aside", () => {
    const longOf = (all: ReadonlyArray<{ readonly path: string; readonly text: string }>) =>
      all.filter(({ path, text }) => path !== "models/src/CatalogData.ts" && text.trimEnd().split("\n").length > 600)
    assert.deepStrictEqual(
      longOf(readSources(/\.(tsx?|css)$/)).map(({ path }) => path),
      []
    )
    assert.lengthOf(longOf(withModule("log/src/log/Long.ts", "//\n".repeat(601))), 1)
  })

  it("AR-2: no modules import each other in a circle", () => {
    assert.deepStrictEqual(circles(modules), [])
    const circle = [
      readModule("log/src/store/A.ts", 'import type { B } from "./B.ts"\n'),
      readModule("log/src/store/B.ts", 'export type C = import("./A.ts").D\n')
    ]
    assert.deepStrictEqual(circles(circle), [["log/src/store/A.ts", "log/src/store/B.ts", "log/src/store/A.ts"]])
  })

  it("AR-3: SQL stands only in the log's storage and in the permission store", () => {
    assert.deepStrictEqual(strayStatements(modules), [])
    const statement = "/** sql`SELECT` */\nconst rows = sql<{ n: number }>`SELECT 1 AS n`\n"
    assert.deepStrictEqual(strayStatements(withModule("core/src/session/New.ts", statement)), [
      "packages/core/src/session/New.ts:2"
    ])
    assert.deepStrictEqual(strayStatements(withModule("cli/src/New.ts", "client.prepare(`SELECT 1`)\n")), [
      "packages/cli/src/New.ts:1"
    ])
  })

  it("AR-3: only the places of SQL, and the modules that assemble layers, import the database", () => {
    assert.deepStrictEqual(strayClients(modules), [])
    const hook = 'import * as SqlHook from "@daybook/log/log/SqlHook"\n'
    assert.deepStrictEqual(strayClients(withModule("core/src/session/New.ts", hook)), [
      "packages/core/src/session/New.ts:1 imports @daybook/log/log/SqlHook"
    ])
    const client = 'import type * as SqlError from "@effect/sql/SqlError"\n'
    assert.deepStrictEqual(strayClients(withModule("tools/src/New.ts", client)), [
      "packages/tools/src/New.ts:1 imports @effect/sql/SqlError"
    ])
  })

  it("AR-4: the log depends on its listed packages and nothing else", () => {
    assert.deepStrictEqual(strayDependencies(modules), [])
    assert.deepStrictEqual(strayDependencies(withModule("log/src/New.ts", 'import { parse } from "yaml"\n')), [
      "packages/log/src/New.ts:1 imports yaml"
    ])
    const { dependencies = {}, peerDependencies = {} } = JSON.parse(
      readFileSync(join(packagesFolder, "log", "package.json"), "utf8")
    ) as Record<"dependencies" | "peerDependencies", Record<string, unknown> | undefined>
    const installed = [...Object.keys(dependencies), ...Object.keys(peerDependencies)]
    assert.deepStrictEqual(installed.sort(), [...logDependencies])
  })

  it("AR-5: `@effect` packages are imported by module", () => {
    assert.deepStrictEqual(barrels(modules), [])
    assert.deepStrictEqual(barrels(withModule("core/src/New.ts", 'import { Tool } from "@effect/ai"\n')), [
      "packages/core/src/New.ts:1 imports @effect/ai"
    ])
  })

  it("AR-6: a fold over events names every event type or its family, or the compiler refuses it", () => {
    assert.deepStrictEqual(openFolds(modules), [])
    const fold = (rest: string) => `switch (event.type) {\n  case "session.next.text.ended":\n    return 1\n${rest}}\n`
    const silent = `const a = 1\n${fold("  default:\n    return 0\n")}${fold("")}${fold("  default:\n    return event satisfies never\n")}${fold('  default:\n    event satisfies EventIn<"texts">\n')}${fold("  default:\n    event satisfies EventIn<Family>\n")}`
    assert.deepStrictEqual(openFolds(withModule("cli/src/render/New.ts", silent)), [
      "packages/cli/src/render/New.ts:2",
      "packages/cli/src/render/New.ts:8",
      "packages/cli/src/render/New.ts:24"
    ])
  })

  const page = readFileSync(join(packagesFolder, "..", "specs", "architecture.md"), "utf8")

  it("AR-9: each module that the page about the architecture names exists", () => {
    const paths = new Set(modules.map(({ path }) => path))
    assert.deepStrictEqual(missingNames(page, paths), [])
    const wrong = [
      "| topic | file in `packages/core/src` |",
      "| a | `session/Sessions.ts`, `Running.ts`, `Nowhere.ts`; `log`: `store/Inbox.ts`, `SqlInbox.ts` |",
      "| b | `session/Sessions.ts`; `packages/log/src/storage/migrations`, `packages/log/src/gone` |",
      "",
      "`Sessions.ts`, `Elsewhere.ts`"
    ]
    assert.deepStrictEqual(missingNames(wrong.join("\n"), paths), [
      "2: Nowhere.ts",
      "3: session/Sessions.ts",
      "3: packages/log/src/gone",
      "5: Elsewhere.ts"
    ])
  })

  it("AR-9: the page about the architecture states the orders that the laws check", () => {
    const stated = statedOrders(page)
    assert.deepStrictEqual(stated.folders, { ...folders })
    // No law checks the imports of the promise package, which is a bundle.
    const { promise, ...modular } = stated.packages
    assert.deepStrictEqual(modular, { ...packages })
    assert.deepStrictEqual(promise, ["api", "client"])
  })

  it("AR-9: each word of the glossary is defined by an export of the module that the glossary names", () => {
    const glossary = readFileSync(join(packagesFolder, "..", "specs", "glossary.md"), "utf8")
    assert.deepStrictEqual(glossaryFaults(glossary, modules), [])
    assert.include(glossary, "| Inbox |")
    const wrong = [
      "| Session | again | `log/src/domain/Message.ts` `Session` |",
      "| A | b | `log/src/domain/Nowhere.ts` `A` |",
      "| B | c | `log/src/domain/Message.ts` `Nothing` |",
      "| C | d | `log/src/log/EventLog.ts` `Head.nothing` |",
      "| D | e |"
    ]
    assert.deepStrictEqual(glossaryFaults([glossary, ...wrong].join("\n"), modules), [
      "Session is explained twice",
      "A: there is no module log/src/domain/Nowhere.ts",
      "B: log/src/domain/Message.ts does not export Nothing",
      "C: log/src/log/EventLog.ts does not declare Head.nothing",
      "not an entry: | D | e |"
    ])
  })

  it("AR-10: other packages import only the modules that a package names in its exports", () => {
    const exported = readExports()
    assert.containsAllKeys(exported, ["api", "client", "server", "shell", "tools"])
    assert.deepStrictEqual(unpromised(modules, exported), [])
    const deep = 'import { make } from "@daybook/server/http/Gate"\n'
    assert.deepStrictEqual(unpromised(withModule("cli/src/New.ts", deep), exported), [
      "packages/cli/src/New.ts:1 imports @daybook/server/http/Gate"
    ])
    const pattern = { mcp: { ...exported["mcp"], "./*": "./src/*.ts", "./Gone": "./src/Gone.ts" } }
    assert.deepStrictEqual(unpromised(modules, { ...exported, ...pattern }), [
      "mcp/src/*.ts is exported and missing",
      "mcp/src/Gone.ts is exported and missing"
    ])
  })
})
