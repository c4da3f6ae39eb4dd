/**
 * The script of Daybook's pages: the inspector, which takes the token from the address, and the page of live shells, if the
 * document names its token. Spec: specs/http.md, SL-224 in specs/shell.md.
 */
import { render } from "preact"
import { takeToken } from "./net/Api.ts"
import { ShellsPage } from "./shells/ShellsPage.tsx"
import { watchRoute } from "./state/Route.ts"
import { restoreTheme } from "./state/Theme.ts"
import { App } from "./view/App.tsx"

restoreTheme()
const root = document.getElementById("app")
const { session, token } = document.body.dataset
if (root !== null && token !== undefined) render(<ShellsPage session={session} token={token} />, root)
else if (root !== null) {
  const own = takeToken()
  watchRoute()
  render(<App token={own} />, root)
}
