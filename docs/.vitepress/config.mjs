/** The site. A link to a page that does not exist fails the build. */
import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { defineConfig } from "vitepress"
import { sidebar } from "./pages.mjs"

/** Puts a picture of the page's folder into the page itself, where it has the colour of the text, light or dark. */
const inlinePictures = (markdown) => {
  const asLink = markdown.renderer.rules.image
  markdown.renderer.rules.image = (tokens, index, options, env, self) => {
    const address = tokens[index].attrGet("src") ?? ""
    if (!address.endsWith(".svg")) return asLink(tokens, index, options, env, self)
    const picture = readFileSync(join(dirname(env.path), address), "utf8")
    return picture.replace(' color="#888"', ' style="max-width: 100%; height: auto"').replaceAll("\n", "")
  }
}

export default defineConfig({
  title: "Daybook",
  description: "Durable sessions for AI agents",
  head: [["link", { rel: "icon", href: "data:," }]],
  srcExclude: ["public/**"],
  // TypeDoc and `scripts/reference.mjs` write these files; they are not pages.
  ignoreDeadLinks: [/^\/(?:api\/index|openapi\.json)/],
  markdown: {
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    config: inlinePictures
  },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 2],
    nav: [
      { text: "Start", link: "/" },
      { text: "Guides", link: "/guides/support-bot" },
      { text: "Concepts", link: "/concepts/log" },
      { text: "Reference", link: "/reference/" }
    ],
    sidebar
  }
})
