/** The verbs of live shells in a container of a real Docker daemon, from the creation to the end of the container. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Dockerd from "../shell/support/Dockerd.ts"
import { build } from "./support/Bundle.ts"
import { shellPlace } from "./support/ShellHost.ts"
import { lacks } from "../support/Parts.ts"

beforeAll(() => void build())

describe.skipIf(lacks("docker"))("shells in a container", () => {
  it.scopedLive("SL-180, SL-182: the verbs open a shell in a container, run commands in it and report its end", () =>
    Effect.gen(function* () {
      const docker = yield* Dockerd.make
      const container = yield* docker.container("--name", "verbs")
      const here = yield* shellPlace()
      const config = join(here.root, "config.yaml")
      writeFileSync(config, `shell: {docker: {host: ${docker.settings.dockerHost}}}\n`)
      const shell = (words: ReadonlyArray<string>, input = "") =>
        here.shell(words, { env: { DAYBOOK_CONFIG: config }, input })
      const created = yield* shell(["create", "--docker", "verbs", "--user", "worker", "--cwd", "/home"])
      assert.deepStrictEqual([created.code, created.stdout, created.stderr], [0, "1_docker_verbs\n", ""])
      const exec = (...words: ReadonlyArray<string>) =>
        Effect.map(shell(["exec", "1_docker_verbs", ...words]), ({ code, stderr, stdout }) => [code, stdout, stderr])
      assert.deepStrictEqual(yield* exec("--", "V=kept; cd /tmp; whoami; echo err >&2; (exit 3)"), [
        3,
        "worker\n",
        "err\n"
      ])
      assert.deepStrictEqual(yield* exec("--", "echo $V $PWD; hostname"), [0, `kept /tmp\n${container}\n`, ""])
      const fed = yield* shell(["exec", "1_docker_verbs", "--stdin", "--", "cat"], "from stdin")
      assert.deepStrictEqual([fed.code, fed.stdout], [0, "from stdin"])
      assert.match((yield* shell(["list"])).stdout, /^1_docker_verbs\b.*\/tmp\b/)
      const missing = yield* shell(["create", "--docker", "no-such-container"])
      assert.deepStrictEqual([missing.code, missing.stdout], [1, ""])
      assert.include(missing.stderr, "no-such-container")
      const running = yield* here.startShell(["exec", "1_docker_verbs", "echo begun; sleep 1000"])
      yield* running.until("stdout", (text) => text === "begun\n")
      docker.run("kill", "verbs")
      const { code, stderr } = yield* running.ended
      assert.deepStrictEqual([code, stderr], [255, "1_docker_verbs is closed: lost\n"])
    })
  )
})
