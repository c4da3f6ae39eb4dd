/** The script of the inspector: takes the token from the address, and draws the page. Spec: specs/inspector.md. */
import { render } from "preact"
import { takeToken } from "./net/Api.ts"
import { watchRoute } from "./state/Route.ts"
import { restoreTheme } from "./state/Theme.ts"
import { App } from "./view/App.tsx"

restoreTheme()
const token = takeToken()
watchRoute()
const root = document.getElementById("app")
if (root !== null) render(<App token={token} />, root)
