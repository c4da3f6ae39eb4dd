/** A program with the promise face of the client, bundled with Effect for a platform that has `fetch` alone. */
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { build } from "esbuild"
import { token } from "../../server/http/support/ServedApi.ts"

const entry = fileURLToPath(new URL("../../../packages/client/src/promise.ts", import.meta.url))

/**
 * Follows a session and gives each event's number to the statement `say`. `baseUrl` is an expression of the program. No module
 * of Node is there: a bundle that imports one is not made.
 */
export const bundled = (sessionID: string, baseUrl: string, say: string): Effect.Effect<string> =>
  Effect.promise(async () => {
    const contents = `
      import { connect } from ${JSON.stringify(entry)}
      const daybook = connect({ baseUrl: ${baseUrl}, token: ${JSON.stringify(token)} })
      for await (const { seq } of daybook.events({ sessionID: ${JSON.stringify(sessionID)} })) { ${say} }
    `
    const { outputFiles } = await build({
      stdin: { contents, resolveDir: fileURLToPath(new URL(".", import.meta.url)), loader: "js" },
      bundle: true,
      write: false,
      format: "esm",
      platform: "browser",
      target: "es2022",
      conditions: ["@daybook/source"]
    })
    return outputFiles[0]?.text ?? ""
  })
