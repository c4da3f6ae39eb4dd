/** What processes that the runtime starts see of its environment: real ones that print theirs. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { childEnvironment, Granted } from "../../packages/core/src/child/ChildEnvironment.ts"
import { everything, makeMcp } from "../mcp/support/Servers.ts"
import { makeWorkbench, textOf } from "./Workbench.ts"

/** What a host may well have in its environment, and a command must not see. */
const secrets = [
  "ANTHROPIC_API_KEY OPENAI_API_KEY AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN",
  "GITHUB_TOKEN GH_TOKEN NPM_TOKEN NODE_AUTH_TOKEN CLIENT_SECRET DATABASE_URL PGPASSWORD",
  "SSH_AUTH_SOCK DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR DOCKER_HOST KUBECONFIG HTTPS_PROXY",
  "DAYBOOK_DB DAYBOOK_CONFIG TICKETS tickets_token LC_TICKETS PATH_TOKEN HOMEPASS",
  "NODE_OPTIONS LD_PRELOAD BASH_ENV ENV PROMPT_COMMAND BASH_FUNC_ls%% GIT_ASKPASS"
].flatMap((line) => line.split(" "))

/** Sets variables of this process for as long as a scope. */
const withVariables = (variables: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const before = Object.keys(variables).map((name) => [name, process.env[name]] as const)
      Object.assign(process.env, variables)
      return before
    }),
    (before) =>
      Effect.sync(() => {
        for (const [name, value] of before) {
          if (value === undefined) delete process.env[name]
          else process.env[name] = value
        }
      })
  )

const settled = Object.fromEntries(secrets.map((name) => [name, `secret-${name}`]))

/** Bash's own, whatever it is given. */
const ofBash = new Set(["PWD", "SHLVL", "_", "OLDPWD"])

const printed = (text: string) =>
  new Map(
    text.split("\n").map((line) => {
      const at = line.indexOf("=")
      return [line.slice(0, at), line.slice(at + 1)] as const
    })
  )

describe("the environment of children", () => {
  it.scopedLive("EN-1: a command sees harmless variables and nothing else of ours", () =>
    Effect.gen(function* () {
      yield* withVariables({ ...settled, LANG: "C.UTF-8", LC_TIME: "C" })
      const bench = yield* makeWorkbench()
      const text = textOf(yield* bench.succeed("bash", { command: "env; cat /proc/self/environ; declare -f" }))
      assert.notInclude(text, "secret-")
      const names = printed(textOf(yield* bench.succeed("bash", { command: "env" })))
      for (const name of ["PATH", "HOME", "LANG", "LC_TIME"]) assert.strictEqual(names.get(name), process.env[name])
      assert.deepStrictEqual(
        [...names.keys()].filter(
          (name) => name !== "" && !ofBash.has(name) && !Object.hasOwn(childEnvironment(process.env), name)
        ),
        []
      )
    })
  )

  it.scopedLive("EN-2: a command sees what the configuration grants by name, and no name that is like it", () =>
    Effect.gen(function* () {
      yield* withVariables(settled)
      const bench = yield* Effect.provideService(makeWorkbench(), Granted, { bash: ["GITHUB_TOKEN", "NOT_SET"] })
      const text = textOf(yield* bench.succeed("bash", { command: "env" }))
      assert.deepStrictEqual(text.match(/secret-.*/g), ["secret-GITHUB_TOKEN"])
      assert.notInclude(text, "NOT_SET")
    })
  )

  it.scoped("EN-3: an MCP server sees harmless variables and those of its own configuration", () =>
    Effect.gen(function* () {
      yield* withVariables(settled)
      const server = { ...everything, env: { GIVEN: "to it", TICKETS: Redacted.make("its own") } }
      const { mcp, said } = yield* makeMcp({ every: server })
      yield* mcp.ready
      const text = yield* said("every_get-env")
      assert.notInclude(text, "secret-")
      for (const words of ["to it", "its own"]) assert.include(text, words)
    })
  )

  it("EN-4: five modules start processes with an environment of this module, two others with nothing of the host's but its path, one with nothing, one the command itself, one the person's editor, and two programs of the desktop", () => {
    const packages = fileURLToPath(new URL("../../packages", import.meta.url))
    const sources = readdirSync(packages).flatMap((name) =>
      readdirSync(join(packages, name, "src"), { recursive: true, encoding: "utf8" })
        .filter((file) => file.endsWith(".ts"))
        .map((file) => join(name, "src", file))
    )
    const starts = sources.filter((file) =>
      /["'](?:node:)?child_process["']|platform\/Command|StdioClientTransport\(/.test(
        readFileSync(join(packages, file), "utf8")
      )
    )
    assert.deepStrictEqual(starts.sort(), [
      "cli/src/config/Keychain.ts",
      "cli/src/host/ShellHostWork.ts",
      "cli/src/screen/Clipboard.ts",
      "cli/src/screen/HostCommand.ts",
      "cli/src/support/Watchdog.ts",
      "core/src/child/Guard.ts",
      "core/src/child/ShellProcess.ts",
      "core/src/snapshot/Git.ts",
      "mcp/src/Transports.ts",
      "shell/src/transport/DockerTransport.ts",
      "shell/src/transport/LocalTransport.ts"
    ])
    const host = readFileSync(join(packages, "cli/src/host/ShellHostWork.ts"), "utf8")
    assert.include(host, 'spawn(process.execPath, [...process.execArgv, program, "shell", "host"], {')
    const command = readFileSync(join(packages, "cli/src/screen/HostCommand.ts"), "utf8")
    assert.include(command, "env: childEnvironment(process.env, bash)")
    assert.deepStrictEqual([command.split("spawn(").length, command.split("spawnSync(").length], [2, 2])
    const guard = readFileSync(join(packages, "core/src/child/Guard.ts"), "utf8")
    assert.include(guard, 'spawn("/bin/sh", ["-c", script], { cwd: "/", env: {},')
    const watchdog = readFileSync(join(packages, "cli/src/support/Watchdog.ts"), "utf8")
    assert.strictEqual(watchdog.split("env: {").length, 2)
    assert.include(watchdog, 'env: { PATH: "/usr/bin:/bin" }')
    const git = readFileSync(join(packages, "core/src/snapshot/Git.ts"), "utf8")
    assert.deepStrictEqual(new Set(git.match(/process\.env[^,\s;)]*/g)), new Set(['process.env["PATH"]']))
    assert.include(git, "env: { ...environment(home), ...env }")
  })

  it("EN-5: programs of the keychain and of the clipboard have the environment of this module and the desktop's addresses", () => {
    const packages = fileURLToPath(new URL("../../packages", import.meta.url))
    for (const file of ["cli/src/config/Keychain.ts", "cli/src/screen/Clipboard.ts"]) {
      const text = readFileSync(join(packages, file), "utf8")
      assert.deepStrictEqual([text.split("spawn(").length, text.split("env: Programs.environment()").length], [2, 2])
    }
    const programs = readFileSync(join(packages, "cli/src/support/Programs.ts"), "utf8")
    assert.include(programs, "childEnvironment(process.env, desktop)")
  })
})
