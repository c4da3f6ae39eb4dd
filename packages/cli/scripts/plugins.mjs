/** What the bundle changes in installed packages, so that commands start fast. Used by bundle.mjs. Spec: CL-60 in specs/cli.md. */
import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"

/**
 * This module re-exports a CommonJS package; in a split bundle, a dynamic import of it would find no names. It is replaced by a
 * module that names the package's exports.
 */
const undici = {
  name: "undici",
  setup: (build) =>
    build.onLoad({ filter: /platform-node[\\/]dist[\\/]esm[\\/]Undici\.js$/ }, ({ path }) => {
      const names = Object.keys(createRequire(path)("undici")).filter(
        (name) => /^\w+$/.test(name) && name !== "default"
      )
      return { contents: `import all from "undici"\nexport const { ${names.join(", ")} } = all\nexport default all` }
    })
}

/**
 * Creating a segmenter takes 12 ms and a pattern over Unicode's emoji 20 ms, and ASCII text needs neither: these constants
 * become functions that create them on first use.
 */
const lazyUnicode = {
  name: "lazy-unicode",
  setup: (build) =>
    build.onLoad({ filter: /(?:string-width|wrap-ansi)[\\/]index\.js$/ }, async ({ path }) => {
      const eager = /^const (\w+) = (new Intl\.Segmenter\(\)|\/.*\\p\{.*\/[gv]+u?);$/gm
      const source = await readFile(path, "utf8")
      const names = Array.from(source.matchAll(eager), ([, name]) => name)
      if (!names.includes("segmenter")) throw new Error(`${path} creates its segmenter in another way`)
      const used = new RegExp(`\\b(${names.join("|")})\\b`, "g")
      const contents = source
        .replace(eager, (_, name, value) => `let made_${name}; const @${name} = () => made_${name} ??= ${value};`)
        .replace(used, (name, _, at, all) => (/[@/]/.test(all[at - 1]) ? name : `${name}()`))
      return { contents: contents.replaceAll("const @", "const ") }
    })
}

/** `ulid` for Node loads `node:crypto` for its own random numbers; we pass ours, and its other build loads nothing. */
const ulid = {
  name: "ulid",
  setup: (build) =>
    build.onResolve({ filter: /^ulid$/ }, () => ({
      path: fileURLToPath(new URL("../browser/index.js", import.meta.resolve("ulid"))),
      sideEffects: false
    }))
}

/** Replaces one text of an installed module; fails if a new version no longer has it. */
const edited = (name, filter, line, by) => ({
  name,
  setup: (build) =>
    build.onLoad({ filter }, async ({ path }) => {
      const source = await readFile(path, "utf8")
      if (source.split(line).length !== 2) throw new Error(`${path} is no longer as the edit ${name} expects it`)
      return { contents: source.replace(line, by) }
    })
})

/** Effect prints a stack to see whether the compiler kept a function of it; printing one at start takes 2 ms. */
const noProbe = edited(
  "no-probe",
  /effect[\\/]dist[\\/]esm[\\/]Utils\.js$/,
  'standard.effect_internal_function(() => new Error().stack)?.includes("effect_internal_function") === true',
  "true"
)

/** V8 cannot copy a prototype's fields fast: each `Deferred` would get hidden classes of its own, 1.4 KB of old garbage, in 6 µs. */
const lightDeferred = edited(
  "light-deferred",
  /effect[\\/]dist[\\/]esm[\\/]internal[\\/]core\.js$/,
  "const _deferred = {\n    ...CommitPrototype,",
  "const _deferred = {\n    __proto__: CommitPrototype,"
)

/**
 * Effect makes a class with static fields for each schema: 18 to 25 µs and 3.2 KB, for a structure 5.8. A start makes 4,000.
 * Here a schema is a function with the same fields: 1 to 4 µs and 0.2 KB, for a structure 0.7.
 */
const lightSchema = {
  name: "light-schema",
  setup: (build) =>
    build.onLoad({ filter: /effect[\\/]dist[\\/]esm[\\/]Schema\.js$/ }, async ({ path }) => {
      const source = await readFile(path, "utf8")
      const derived = /return class \w+ extends make\(ast\) \{\n([\s\S]*?)\n {2}\};/g
      if (source.split(schemaClass).length !== 2 || Array.from(source.matchAll(derived)).length !== 8) {
        throw new Error(`${path} makes its schemas in another way`)
      }
      const contents = source
        .replace(schemaClass, schemaFunction)
        .replace(derived, (_, body) => `const schema = make(ast);\n${assigned(body)}\n    return schema;`)
      return { contents }
    })
}
const schemaClass = `  return class SchemaClass {
    [TypeId] = variance;
    static ast = ast;
    static annotations(annotations) {
      return make(mergeSchemaAnnotations(this.ast, annotations));
    }
    static pipe() {
      return pipeArguments(this, arguments);
    }
    static toString() {
      return String(ast);
    }
    static Type;
    static Encoded;
    static Context;
    static [TypeId] = variance;
  };
}`
const schemaFunction = `  function SchemaClass() {
    this[TypeId] = variance;
  }
  SchemaClass.ast = ast;
  return Object.setPrototypeOf(SchemaClass, ofSchemas);
}
const ofSchemas = {
  __proto__: Function.prototype,
  annotations(annotations) {
    return make(mergeSchemaAnnotations(this.ast, annotations));
  },
  pipe() {
    return pipeArguments(this, arguments);
  },
  toString() {
    return String(this.ast);
  },
  get [TypeId]() {
    return variance;
  }
};`
/** The static fields of a class as assignments. The value of one may be an arrow function, whose `this` is the class. */
const assigned = (body) =>
  body
    .replace(/^ {4}static (\w+)\((.*)\) \{$/gm, "    schema.$1 = function ($2) {")
    .replace(/^ {4}static (?=\[)/gm, "    schema")
    .replace(/^ {4}static (?=\w+ = )/gm, "    schema.")
    .replace(/validateSync\(this\)/g, "validateSync(schema)")

/** Schemas can generate test data; the command never does, so the generators are left out. */
const noGenerators = {
  name: "no-generators",
  setup: (build) => {
    build.onResolve({ filter: /^fast-check$/ }, () => ({ path: "fast-check", namespace: "empty", sideEffects: false }))
    build.onLoad({ filter: /.*/, namespace: "empty" }, () => ({ contents: "module.exports = {}" }))
  }
}

/**
 * Prepares our modules for removal of what a bundle does not use. Imports from the root of `effect` become imports of its
 * modules: through the root, esbuild keeps all of a module that is used once. Calls that only make values (a schema, an
 * effect, a layer) are annotated, as those of `effect`'s own modules are. A call whose function runs at once, as that of
 * `Option.map`, is not: esbuild would remove it where its result is not used.
 */
const shakeable = {
  name: "shakeable",
  setup: (build) =>
    build.onLoad({ filter: /packages[\\/]\w+[\\/]src[\\/].*\.ts$/ }, async ({ path }) => ({
      loader: "ts",
      contents: (await readFile(path, "utf8"))
        .replace(/^import \{([^}]*)\} from "effect"$/gm, (_, names) => names.split(",").map(ofModule).join("; "))
        .replace(/^(?! *(?:\/?\*|\/\/)).*$/gm, (line) => line.replace(makesValue, "/* @__PURE__ */ $&"))
    }))
}
const ofModule = (name) => {
  const [imported, as = imported] = name.trim().split(" as ")
  return imported === "" || imported.startsWith("type ") ? "" : `import * as ${as} from "effect/${imported}"`
}
const makesValue =
  /(?<![\w.`"'/])(?:Schema|Metric|MetricBoundaries|Layer|Schedule|Effect(?!\.run)|ParseResult)\.[a-zA-Z]\w*(?=[(<])/g

export const plugins = [undici, ulid, noProbe, lightDeferred, lightSchema, lazyUnicode, noGenerators, shakeable]
