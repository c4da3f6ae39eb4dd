/**
 * The services of `deploy/compose.yaml` as a project of its own, with a model beside them. It runs the Compose that is there: the
 * plugin, or Debian's `docker-compose`, which does not know a project's name in the file.
 */
import { execFile, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { root } from "../../packages/support/Packages.ts"

const run = promisify(execFile)

const deploy = join(root, "deploy")

const freePort = async (): Promise<number> => {
  const socket = createServer().listen(0, "127.0.0.1")
  await once(socket, "listening")
  const address = socket.address()
  socket.close()
  return typeof address === "object" && address !== null ? address.port : 0
}

const model = `
services:
  model:
    image: node:24-bookworm-slim
    command: [node, /slowModel.mjs]
    volumes: ["${join(import.meta.dirname, "slowModel.mjs")}:/slowModel.mjs:ro"]
    networks: [inside]
`

export const nodes = ["node1", "node2", "node3"] as const
export type NodeName = (typeof nodes)[number]

export interface Stack {
  readonly url: string
  readonly compose: (...words: ReadonlyArray<string>) => Promise<string>
  readonly docker: (...words: ReadonlyArray<string>) => Promise<string>
  /** The container of a service, also one that does not run. */
  readonly container: (service: string) => Promise<string>
  /** Removes containers, networks and volumes. */
  readonly end: () => Promise<void>
}

export const make = async (): Promise<Stack> => {
  const folder = mkdtempSync(join(tmpdir(), "daybook-compose-"))
  const isPlugin = spawnSync("docker", ["compose", "version"]).status === 0
  const [file, beside] = [join(folder, "compose.yaml"), join(folder, "model.yaml")]
  writeFileSync(file, readFileSync(join(deploy, "compose.yaml"), "utf8").replace(/^name:.*$/m, ""))
  writeFileSync(beside, model)
  const port = await freePort()
  const env = {
    PATH: process.env["PATH"],
    DOCKER_HOST: process.env["DOCKER_HOST"],
    HOME: folder,
    DOCKER_BUILDKIT: "1",
    COMPOSE_DOCKER_CLI_BUILD: "1",
    DAYBOOK_PORT: String(port),
    DAYBOOK_BASE_URL: "http://model:8000/v1",
    DAYBOOK_MODEL: "openai-compatible/slow"
  }
  const call = async (program: string, words: ReadonlyArray<string>): Promise<string> =>
    (await run(program, words, { cwd: root, env, maxBuffer: 2 ** 26 })).stdout.trim()
  const project = ["--project-directory", deploy, "--project-name", "daybook-test", "-f", file, "-f", beside]
  const compose: Stack["compose"] = (...words) =>
    isPlugin ? call("docker", ["compose", ...project, ...words]) : call("docker-compose", [...project, ...words])
  const docker: Stack["docker"] = (...words) => call("docker", words)
  return {
    url: `http://127.0.0.1:${port}`,
    compose,
    docker,
    container: async (service) => {
      const filters = ["com.docker.compose.project=daybook-test", `com.docker.compose.service=${service}`]
      return docker("ps", "--all", "--quiet", ...filters.flatMap((each) => ["--filter", `label=${each}`]))
    },
    end: async () => {
      await compose("down", "--volumes", "--timeout", "1")
      rmSync(folder, { recursive: true, force: true })
    }
  }
}
