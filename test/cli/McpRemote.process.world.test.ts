/** `daybook mcp` with the operator's settings of other machines: a real OpenSSH server and a real Docker daemon. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as Dockerd from "../shell/support/Dockerd.ts"
import { lacks } from "../support/Parts.ts"
import * as Sshd from "../shell/support/Sshd.ts"
import { connect } from "./support/McpClient.ts"
import { type Place, place } from "./support/Process.ts"

/** Writes the user's configuration, as JSON, which YAML contains. */
const configure = ({ root }: Place, shell: object) => {
  const folder = join(root, ".config", "daybook")
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "config.yaml"), JSON.stringify({ shell }))
}

/** Every byte of every file in the place. */
const bytesOf = ({ root }: Place) =>
  Buffer.concat(
    readdirSync(root, { recursive: true, withFileTypes: true, encoding: "utf8" })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name)))
  )

describe.skipIf(lacks("sshd"))("over SSH", () => {
  it.scopedLive("SL-86: the configuration names the keys and the hosts, and no argument of a client does", () =>
    Effect.gen(function* () {
      const { folder, port, user } = yield* Sshd.make()
      const here = yield* place
      configure(here, { ssh: { keys: folder, known_hosts: [join(folder, "known_hosts")] } })
      const { call } = yield* connect(here)
      const ssh = { transport: "ssh", host: "127.0.0.1", port, user, key_path: "user" }
      const { value } = yield* call("session_create", { ...ssh, cwd: "/usr" })
      expect(value["session_id"]).toBe(`1_ssh_${user}@127.0.0.1:${port}`)
      const ran = yield* call("session_exec", { session_id: value["session_id"], command: "id -un; pwd" })
      expect(ran.value).toMatchObject({ stdout: `${user}\n/usr`, exit_code: 0 })
      for (const field of ["known_hosts", "keys", "accept_new", "agent_socket"]) {
        const refused = yield* call("session_create", { ...ssh, [field]: "/tmp" })
        expect(refused).toMatchObject({ isError: true, value: { error: { code: "InvalidOption" } } })
        expect(refused.text).toContain(field)
      }
    })
  )

  it.scopedLive("SL-89: a host that no file names is refused; accept_new of the configuration remembers it", () =>
    Effect.gen(function* () {
      const { folder, port, user } = yield* Sshd.make()
      const ssh = { transport: "ssh", host: "127.0.0.1", port, user, key_path: "user" }
      const stranger = yield* place
      configure(stranger, { ssh: { keys: folder, known_hosts: [] } })
      const refused = yield* (yield* connect(stranger)).call("session_create", ssh)
      expect(refused).toMatchObject({ isError: true, value: { error: { code: "TransportFailed" } } })
      const trusting = yield* place
      configure(trusting, { ssh: { keys: folder, known_hosts: [], accept_new: true } })
      expect((yield* (yield* connect(trusting)).call("session_create", ssh)).isError).toBe(false)
      const remembered = bytesOf(trusting).includes(`[127.0.0.1]:${port} ssh-ed25519`)
      expect(remembered).toBe(true)
    })
  )

  it.scopedLive("SL-25: the password of a host is in no result, file or database", () =>
    Effect.gen(function* () {
      const { folder, password, port, user } = yield* Sshd.make()
      const here = yield* place
      configure(here, { ssh: { known_hosts: [join(folder, "known_hosts")] } })
      const { call } = yield* connect(here)
      const secret = Redacted.value(password)
      const ssh = { transport: "ssh", host: "127.0.0.1", port, user, password: secret }
      const { value } = yield* call("session_create", ssh)
      const { text } = yield* call("session_exec", { session_id: value["session_id"], command: `echo ${secret}` })
      const wrong = yield* call("session_create", { ...ssh, password: `${secret}x` })
      expect(wrong).toMatchObject({ isError: true, value: { error: { code: "TransportFailed" } } })
      const bytes = bytesOf(here)
      expect(bytes.includes("session.next.shell.executed")).toBe(true)
      for (const each of [text, wrong.text, bytes]) expect(each.includes(secret)).toBe(false)
    })
  )
})

describe.skipIf(lacks("docker"))("in a container", () => {
  it.scopedLive("SL-86: the configuration names the Docker daemon; a shell runs in its container", () =>
    Effect.gen(function* () {
      const docker = yield* Dockerd.make
      const id = yield* docker.container("--name", "web")
      const here = yield* place
      configure(here, { docker: { host: docker.settings.dockerHost } })
      const { call } = yield* connect(here)
      const { value } = yield* call("session_create", { transport: "docker", container: "web", user: "worker" })
      expect(value["session_id"]).toBe("1_docker_web")
      const ran = yield* call("session_exec", { session_id: value["session_id"], command: "hostname; id -un" })
      expect(ran.value).toMatchObject({ stdout: `${id}\nworker`, exit_code: 0 })
      expect((yield* call("session_destroy", { session_id: value["session_id"] })).value).toEqual({ destroyed: true })
    })
  )
})
