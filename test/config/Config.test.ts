import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Either, FastCheck as fc, Redacted } from "effect"
import { stringify } from "yaml"
import * as Config from "../../packages/cli/src/config/Config.ts"
import { showIssues } from "../../packages/core/src/definition/Yaml.ts"
import { isStdio, type McpServer } from "../../packages/mcp/src/McpServer.ts"

const surroundings = { folder: "/etc/daybook", home: "/home/ada", environment: { TOKEN: "s3cret", "NOT-A-NAME": "x" } }

const parse = (text: string) => Config.parseConfig(text, surroundings)
const accepted = (text: string) => Either.getOrThrowWith(parse(text), (issues) => new Error(showIssues(issues)))
const refused = (text: string) => Either.match(parse(text), { onLeft: showIssues, onRight: () => "accepted" })

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "daybook-config-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const givenTo = (server: McpServer | undefined) =>
  server === undefined ? {} : ((isStdio(server) ? server.env : server.headers) ?? {})

const example = () => {
  const specs = readFileSync(fileURLToPath(new URL("../../specs/config.md", import.meta.url)), "utf8")
  return /```yaml\n([^]*?)```/.exec(specs)?.[1] ?? ""
}

describe("the example", () => {
  it("CF-7: the specification's example is read as it says", () => {
    const settings = accepted(example())
    assert.deepStrictEqual(settings.compaction, {
      enabled: true,
      reserveTokens: 16_384,
      keepRecentTokens: 20_000,
      prune: true
    })
    assert.deepStrictEqual(settings.instructions, [
      "~/notes/style.md",
      "docs/*.md",
      "https://example.com/team/instructions.md"
    ])
    assert.deepStrictEqual(settings.references, {
      handbook: { path: "/home/ada/work/handbook" },
      api: { path: "/etc/api/openapi.yaml", description: "The interface of the service, as it is deployed" }
    })
    assert.deepStrictEqual(settings.skills, ["/home/ada/skills"])
    assert.deepStrictEqual(settings.environment, { bash: ["JAVA_HOME", "SSH_AUTH_SOCK"] })
    assert.deepStrictEqual(settings.sandbox, {
      mode: "off",
      network: "off",
      writable: ["/home/ada/.cache/pip"],
      readable: ["/home/ada/.nvm"],
      autoAllow: false,
      processes: 1_024,
      memory: 4_096
    })
    assert.deepStrictEqual(settings.budget, { cost: 5, tokens: 2_000_000 })
    assert.strictEqual(settings.maxLoopLag, 200)
    assert.deepStrictEqual(settings.snapshotFolders, ["/home/ada/notes"])
    assert.deepStrictEqual(settings.prices, {
      "openai-compatible/qwen3:8b": { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
      "anthropic/claude-opus-5-5": { input: 4, output: 20, cacheRead: 0.2, cacheWrite: 5 }
    })
    assert.deepStrictEqual(settings.providers?.["lab"], {
      api: "openai-compatible",
      baseUrl: "http://gpu.example:8000/v1",
      apiKey: Redacted.make(""),
      headers: { "x-team": Redacted.make("") },
      like: "mistral",
      profile: { alternates: false },
      models: {
        "qwen3-coder": {
          contextTokens: 131_072,
          outputTokens: 16_384,
          media: ["image"],
          thinks: true,
          variants: ["low", "high"]
        }
      },
      missing: ["LAB_KEY", "TEAM"]
    })
    assert.deepStrictEqual(settings.shared, {
      team: { agents: ["build", "review"], read: "group", write: "owner", group: "staff" }
    })
    assert.deepStrictEqual(settings.templates, [
      { name: "commit", body: "Write a commit message for what is staged. $ARGUMENTS" },
      { name: "explain", description: "Explain one file", body: "Explain $1 to somebody who knows $2." }
    ])
    assert.deepStrictEqual(Object.keys(settings.mcp ?? {}), ["files", "tickets"])
    const [review, plan] = settings.agents ?? []
    assert.deepInclude(review, {
      name: "review",
      mode: "subagent",
      model: { providerID: "anthropic", id: "claude-opus-5-5", variant: "high" },
      turnLimit: 15,
      bash: "process",
      settings: { temperature: 0.2, maxOutputTokens: 8_000 }
    })
    assert.deepStrictEqual(review?.permissions.slice(-3), [
      { permission: "bash", resource: "*", verdict: "ask" },
      { permission: "bash", resource: "git diff *", verdict: "allow" },
      { permission: "edit", resource: "*", verdict: "deny" }
    ])
    assert.strictEqual(plan?.turnLimit, 40)
    assert.isDefined(plan?.enterReminder)
    assert.isTrue(plan?.permissions.some(({ permission, verdict }) => permission === "edit" && verdict === "deny"))
  })

  it("CF-7: with every line a comment, and with empty sections, it says nothing", () => {
    const commented = example()
      .split("\n")
      .map((line) => `# ${line}`)
      .join("\n")
    for (const text of [commented, "", "compaction:\nagents:\n  # none\nmcp:\n"]) {
      assert.deepStrictEqual(accepted(text), {})
    }
  })
})

describe("permission_timeout", () => {
  it("CF-480: it is a duration, or never, and a number without a unit is refused", () => {
    assert.deepStrictEqual(accepted("permission_timeout: 12h"), { permissionTimeout: 43_200_000 })
    assert.deepStrictEqual(accepted("permission_timeout: never"), { permissionTimeout: 0 })
    assert.include(refused("permission_timeout: 10"), "never, or a whole number and a unit")
  })
})

describe("snapshots", () => {
  it("CF-51: their size, their folders and whether there are any are read, and a bad size is refused", () => {
    assert.deepStrictEqual(accepted("snapshots: { enabled: true, max_size: 1GB, folders: [~/notes, sub] }"), {
      snapshotBytes: 1_000_000_000,
      snapshotFolders: ["/home/ada/notes", "/etc/daybook/sub"]
    })
    assert.deepStrictEqual(accepted("snapshots: { enabled: false }"), { snapshots: false })
    assert.include(refused("snapshots: { max_size: 0 }"), "snapshots.max_size")
  })
})

describe("faults", () => {
  it("CF-3: all faults of a file come at once, each with its place and what was expected", () => {
    const text = [
      "compaction: {enabled: yes, reserve_token: 5}",
      "budget:",
      "  cost: -1",
      "references:",
      "  docs: {path: 7}",
      "agents:",
      "  a: {mode: main, permissions: {edit: never}, model: claude}",
      "instructions: none",
      "mpc: {}"
    ].join("\n")
    const lines = refused(text).split("\n")
    const expected = [
      /^line 1, column \d+: compaction\.enabled: expected true or false, found "yes"$/,
      /^line 1, column \d+: compaction\.reserve_token: .*did you mean "reserve_tokens"\?$/,
      /^line 3, column 9: budget\.cost: expected a number, 0 or more, found -1$/,
      /^line 5, column \d+: references\.docs\.path: expected a text that is not empty, found 7$/,
      /^line 7, column \d+: agents\.a\.mode: expected primary, subagent or all, found "main"$/,
      /^line 7, column \d+: agents\.a\.permissions\.edit: expected allow, ask or deny, found "never"$/,
      /^line 7, column \d+: agents\.a\.model: expected a model as provider\/id.*found "claude"$/,
      /^line 8, column 15: instructions: expected a list of texts, found "none"$/,
      /^line 9, column \d+: mpc: there is no such key; did you mean "mcp"\?$/
    ]
    for (const pattern of expected)
      assert.isTrue(
        lines.some((line) => pattern.test(line)),
        `${pattern}\n${lines.join("\n")}`
      )
    assert.strictEqual(lines.length, expected.length)
  })

  it.each([
    [
      "a variable's name that is none",
      "environment: {bash: [A-B]}\n",
      /environment\.bash\[0\]: expected the name of a variable, found "A-B"/
    ],
    [
      "a sandbox that is neither on nor off",
      "sandbox: {mode: maybe, memory: 0, shared: []}\n",
      /sandbox\.mode: expected off or on, found "maybe"[^]*sandbox\.memory: expected a whole number, 1 or more[^]*shared: there is no such key/
    ],
    [
      "a server's sandbox that is neither",
      "mcp: {a: {command: x, sandbox: {mode: 1}}}\n",
      /sandbox\.mode: expected off or on/
    ],
    ["a list instead of settings", "- a\n", /expected a map of settings, found a list/],
    ["a text instead of settings", "hello\n", /expected a map of settings, found "hello"/],
    [
      "an agent's name with a path in it",
      "agents: {../x: {}}\n",
      /^line 1, column \d+: agents\."?\.\.\/x"?: expected a name/
    ],
    [
      "a server's name in upper case",
      "mcp: {Files: {command: x}}\n",
      /^line 1, column \d+: mcp\.Files: expected a name/
    ],
    ["a server without a command", "mcp: {a: {args: []}}\n", /mcp\.a\.command: is missing/],
    [
      "a server with a command and a url",
      "mcp: {a: {command: x, url: 'http://x'}}\n",
      /mcp\.a\.command: there is no such key/
    ],
    ["a url of another kind", "mcp: {a: {url: 'file:///etc/passwd'}}\n", /mcp\.a\.url: expected a URL/],
    [
      "a header of two lines",
      'mcp: {a: {url: "http://x", headers: {X: "a\\nb"}}}\n',
      /mcp\.a\.headers: expected header/
    ],
    [
      "too many rules",
      `agents: {a: {permissions: [${"{permission: a, verdict: ask},".repeat(201)}]}}\n`,
      /at most 200 rules/
    ],
    ["a space without a name", "shared: {'': {}}\n", /^line 1, column \d+: shared\.\S*: expected a name: 1-64 letters/],
    ["a space with a path for a name", "shared: {../x: {}}\n", /shared\.\S+: expected a name: 1-64 letters/],
    ["a space with the name of a socket", "shared: {team.sock: {}}\n", /shared\.\S+: expected a name/],
    [
      "a space that is a list",
      "shared: {team: []}\n",
      /^line 1, column \d+: shared\.team: expected a map, found a list/
    ],
    ["spaces that are a text", "shared: team\n", /shared: expected a map of names, found "team"/],
    ["an unknown key of a space", "shared: {team: {reed: group}}\n", /shared\.team\.reed: .*did you mean "read"\?/],
    ["readers that nobody knows", "shared: {team: {read: all}}\n", /expected owner, group or everyone, found "all"/],
    ["an agent of a space with a path in it", "shared: {team: {agents: [a/b]}}\n", /agents.*expected a name: 1-64/],
    ["a way to run commands that there is not", "agents: {a: {bash: shell}}\n", /expected process or live/],
    ["one agent where a list belongs", "shared: {team: {agents: a}}\n", /expected a list of names, found "a"/],
    ["an infinite cost", "budget: {cost: .inf}\n", /budget\.cost: expected a number/],
    ["a price without its output", "prices: {a/b: {input: 1}}\n", /prices\.a\/b|prices.*output/],
    ["a negative price", "prices: {a/b: {input: -1, output: 1}}\n", /input: expected a number, 0 or more/],
    ["a price of no model", "prices: {b: {input: 1, output: 1}}\n", /prices\.b: expected a name: provider\/model/]
  ])("CF-3: %s is refused", (_, text, expected) => {
    assert.match(refused(text), expected)
  })

  it.prop("CF-3: no data at all makes the reader throw", [fc.jsonValue()], ([value]) => {
    parse(stringify(value))
    parse(stringify({ agents: { a: value }, mcp: { b: value }, references: value, budget: value, shared: value }))
    parse(stringify({ shared: { a: value, b: { agents: value, read: value } } }))
  })

  it.prop("CF-2: no text at all makes the reader throw", [fc.string({ unit: "binary", maxLength: 400 })], ([text]) => {
    parse(text)
  })
})

describe("shared spaces", () => {
  it("CF-23: the owner alone reads unless it is said, and who may keep sessions there is left as it is written", () => {
    const { shared } = accepted(
      "shared:\n  a: {}\n  b.c+d: {read: everyone, agents: []}\n  list: {agents: [coder, x.y]}\n  index: {read: group}\n"
    )
    assert.deepStrictEqual(shared, {
      a: { read: "owner" },
      "b.c+d": { agents: [], read: "everyone" },
      list: { agents: ["coder", "x.y"], read: "owner" },
      index: { read: "group" }
    })
    assert.deepStrictEqual(accepted("shared:\n  # none\n"), {})
  })

  it("CF-37: a space has a group by name or number, and nobody writes to it who may not read it", () => {
    const { shared } = accepted(
      "shared: {a: {read: everyone, write: group, group: staff}, b: {read: group, group: 50}}"
    )
    assert.deepStrictEqual(shared, {
      a: { read: "everyone", write: "group", group: "staff" },
      b: { read: "group", group: 50 }
    })
    for (const [space, fault] of [
      ["{write: group}", /shared\.a: expected read to be at least as wide as write/],
      ["{read: group, write: everyone}", /shared\.a: expected read to be at least as wide as write/],
      ["{read: group, group: -1}", /shared\.a\.group: expected the name or the number of a group/],
      ["{read: group, group: 1.5}", /shared\.a\.group: expected the name or the number of a group/],
      ["{write: all}", /shared\.a\.write: expected owner, group or everyone/]
    ] as const) {
      assert.match(refused(`shared: {a: ${space}}`), fault)
    }
  })
})

describe("secrets", () => {
  const servers = [
    "mcp:",
    "  a: {command: x, env: {KEY: 'pre ${env:TOKEN} post', PLAIN: open-secret}}",
    "  b: {url: 'http://x/', headers: {Authorization: 'Bearer ${env:TOKEN}'}}"
  ].join("\n")

  it("CF-8: variables are put in, and all that a server is given is redacted", () => {
    const { mcp = {} } = accepted(servers)
    const revealed = [mcp.a, mcp.b].map((server) =>
      Object.values(givenTo(server)).map((value) =>
        Redacted.isRedacted(value) ? Redacted.value(value) : "not redacted"
      )
    )
    assert.deepStrictEqual(revealed, [["pre s3cret post", "open-secret"], ["Bearer s3cret"]])
    assert.notMatch(JSON.stringify(mcp), /s3cret|open-secret/)
  })

  it("CF-8: a variable that is not set or has no name is a fault with its place", () => {
    const text =
      "mcp:\n  a:\n    command: x\n    env:\n      A: ${env:MISSING}\n      B: ${env:NOT-A-NAME}\n      C: ${env:TOKEN\n"
    const lines = refused(text).split("\n")
    assert.match(lines[0] ?? "", /^line 5, column 10: mcp\.a\.env\.A: the environment variable MISSING is not set$/)
    assert.match(lines[1] ?? "", /^line 6, column 10: mcp\.a\.env\.B: expected \$\{env:NAME\}/)
    assert.match(lines[2] ?? "", /^line 7, column 10: mcp\.a\.env\.C: expected \$\{env:NAME\}/)
  })

  it("CF-8: a server that is off needs none of its variables", () => {
    const { mcp = {} } = accepted("mcp: {a: {command: x, enabled: false, env: {A: '${env:MISSING}'}}}\n")
    assert.strictEqual(mcp.a?.enabled, false)
  })

  it("CF-8: elsewhere nothing is expanded, and what a variable holds is not expanded again", () => {
    const settings = accepted("templates: {t: 'say ${env:TOKEN}'}\nmcp: {a: {command: '${env:TOKEN}'}}\n")
    assert.strictEqual(settings.templates?.[0]?.body, "say ${env:TOKEN}")
    assert.deepStrictEqual(settings.mcp?.a, { command: "${env:TOKEN}" })
    const again = Config.parseConfig("mcp: {a: {command: x, env: {A: '${env:OUTER}'}}}\n", {
      ...surroundings,
      environment: { OUTER: "${env:TOKEN}", TOKEN: "s3cret" }
    })
    const [value] = Object.values(givenTo(Either.getOrThrow(again).mcp?.a))
    assert.isTrue(Redacted.isRedacted(value) && Redacted.value(value) === "${env:TOKEN}")
  })

  it("CF-8: no fault shows a value from under mcp", () => {
    const hidden = [
      "mcp: {a: {command: x, env: {K: 4711}}}",
      "mcp: {a: hunter2}",
      "mcp: {a: {url: 'ftp://u:hunter2@x'}}"
    ]
    for (const text of [...hidden, "mcp: {a: {command: x, args: hunter2, timeout: hunter2}}", "mcp: [hunter2]"]) {
      assert.notMatch(refused(text), /4711|hunter2|accepted/)
    }
  })
})

describe("files", () => {
  it.scoped("CF-7: a file that is not there says nothing, and none is made", () =>
    Effect.gen(function* () {
      const at = yield* folder
      assert.deepStrictEqual(yield* Config.load(join(at, "config.yaml")), {})
      assert.deepStrictEqual(yield* Config.load(join(at, "no", "such", "folder", "config.yaml")), {})
      assert.deepStrictEqual(readdirSync(at), [])
    })
  )

  it.scoped("CF-7: paths are relative to the file's folder, and the home is what it is given", () =>
    Effect.gen(function* () {
      const at = yield* folder
      writeFileSync(join(at, "config.yaml"), "\uFEFFskills: [s, ~/t, /u, ../v, ~w]\n")
      const { skills } = yield* Config.load(join(at, "config.yaml"), { home: "/h" })
      assert.deepStrictEqual(skills, [join(at, "s"), "/h/t", "/u", join(at, "../v"), join(at, "~w")])
    })
  )

  it.scoped("CF-1: what is no small text file is refused with the file's name and the reason", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const refusal = (name: string) =>
        Effect.map(Effect.flip(Config.load(join(at, name))), (error) => {
          assert.strictEqual(error._tag, "ConfigInvalid")
          assert.strictEqual(error.file, join(at, name))
          assert.include(error.message, join(at, name))
          return error.message
        })
      mkdirSync(join(at, "folder"))
      execFileSync("mkfifo", [join(at, "pipe")])
      writeFileSync(join(at, "large"), "a".repeat(1024 * 1024 + 1))
      writeFileSync(join(at, "latin"), Buffer.from([0x61, 0x3a, 0x20, 0xe9]))
      writeFileSync(join(at, "nul"), "a: \0")
      writeFileSync(join(at, "bad"), "a: [\n")
      assert.match(yield* refusal("folder"), /it is a folder/)
      assert.match(yield* refusal("pipe"), /not a regular file/)
      assert.match(yield* refusal("large"), /larger than 1,048,576 bytes/)
      assert.match(yield* refusal("latin"), /not UTF-8/)
      assert.match(yield* refusal("nul"), /NUL/)
      assert.match(yield* refusal("bad"), /line \d+, column \d+/)
    })
  )
})
