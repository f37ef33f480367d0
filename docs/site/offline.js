// Runs the worker of the search in a frame when the site is opened as files: browsers refuse workers of file: addresses.
"use strict";
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inner = this.frame.contentWindow;
      inner.postMessage = (data) => {
        const copy = structuredClone(data);
        setTimeout(() => {
          const event = new MessageEvent("message", { data: copy });
          this.dispatchEvent(event);
          if (this.onmessage) this.onmessage(event);
        });
      };
      inner.importScripts = (...names) =>
        names.reduce((before, name) => before.then(() => this.load(new URL(name, url))), Promise.resolve());
      this.ready = this.load(url);
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = url;
        script.onload = resolve;
        script.onerror = reject;
        this.frame.contentDocument.body.append(script);
      });
    }

    postMessage(data) {
      const copy = structuredClone(data);
      this.ready.then(() => {
        const inner = this.frame.contentWindow;
        inner.dispatchEvent(new inner.MessageEvent("message", { data: copy }));
      });
    }

    terminate() {
      this.frame.remove();
    }
  };
}
