// Unpacking, and building elements from the markup of test.html.jinja. Texts from outside become text nodes and nothing
// else.
const byId = (id) => document.getElementById(id);

const unpack = async (element) => {
  const packed = atob(element.textContent);
  const bytes = new Uint8Array(packed.length);
  for (let index = 0; index < packed.length; index += 1) bytes[index] = packed.charCodeAt(index);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
};

// The elements and attributes of the templates; anything else is refused, so that a text that was not escaped becomes an
// error and no element. The policy of the page forbids the browser's own parser for markup from a script.
const TAGS = /^(?:a|b|bdi|code|dd|del|details|div|dl|dt|fieldset|h[2-4]|input|ins|label|legend|li|mark|ol|p|pre|section|small|span|summary|sup|table|tbody|td|th|thead|tr)$/;
const DRAWN = /^(?:svg|path|circle|line|rect)$/;
const ATTRIBUTES = /^(?:class|id|href|rel|dir|open|tabindex|role|scope|title|type|name|value|checked|viewBox|width|height|d|x|y|x1|x2|y1|y2|cx|cy|r|data-(?:field|judge|k|m|metric|n|text|touched|values)|aria-(?:current|label|hidden))$/;
const TAG = /<(\/?)([a-z0-9]+)((?: [A-Za-z0-9-]+="[^"<>]*")*)(\/?)>/y;
const ATTRIBUTE = /([A-Za-z0-9-]+)="([^"]*)"/g;
const ADDRESS = /^(?:#|https:\/\/)/;
const ESCAPED = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&#34;": '"', "&#39;": "'" };
const unescaped = (text) => text.replace(/&(?:amp|lt|gt|#34|#39);/g, (escape) => ESCAPED[escape]);

// Calls back for every start tag, end tag and text of a fragment of markup.
const read = (markup, { start, end, text }) => {
  for (let place = 0; place < markup.length;) {
    const next = markup.indexOf("<", place);
    if (next !== place) {
      text(unescaped(markup.slice(place, next < 0 ? markup.length : next)));
      if (next < 0) return;
    }
    TAG.lastIndex = next;
    const [tag, closing, name, attributes, empty] = TAG.exec(markup) ?? [];
    if (!tag) throw new Error(`no tag of this page: ${markup.slice(next, next + 40)}`);
    if (!closing) start(name, attributes);
    if (closing || empty || name === "input") end(name);
    place = TAG.lastIndex;
  }
};

const create = (name, attributes = "") => {
  if (!TAGS.test(name) && !DRAWN.test(name)) throw new Error(`not an element of this page: ${name}`);
  const element = DRAWN.test(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [, key, value] of attributes.matchAll(ATTRIBUTE)) {
    if (!ATTRIBUTES.test(key) || (key === "href" && !ADDRESS.test(value)) || (key === "type" && value !== "radio")) {
      throw new Error(`not an attribute of this page: ${key}`);
    }
    element.setAttribute(key, unescaped(value));
  }
  return element;
};

const build = (markup) => {
  const root = document.createDocumentFragment();
  let parent = root;
  read(markup, {
    start: (name, attributes) => { parent = parent.appendChild(create(name, attributes)); },
    end: () => { parent = parent.parentNode; },
    text: (text) => parent.append(text),
  });
  return root;
};

// Only texts from outside are searched: those in <bdi> and dir="auto", without the page's own words in them. They are
// read across the marks in them.
const INLINE = /^(?:a|mark|del|ins|details|summary|sup)$/;
const OUTSIDE = / dir="auto"/;
const OWN = / class="(?:n |sr"|none")/;
const wordsOf = (markup) => {
  const open = [{ outside: false, block: true }];
  let words = "";
  read(markup, {
    start: (name, attributes) => {
      const { outside } = open.at(-1);
      const own = OWN.test(attributes) || (name === "summary" && outside);
      const block = !own && !INLINE.test(name);
      open.push({ outside: !own && (outside || name === "bdi" || OUTSIDE.test(attributes)), block });
      if (block) words += "\n";
    },
    end: () => { if (open.pop().block) words += "\n"; },
    text: (text) => { if (open.at(-1).outside) words += text; },
  });
  return words;
};

const folded = (text) => text.normalize("NFC").toLowerCase();
