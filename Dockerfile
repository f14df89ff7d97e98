# tfformer serve: translation over HTTP. docker build --tag tfformer-serve .
# Without TensorFlow, for LiteRT or CTranslate2 exports: --build-arg RUNTIME=litert, or ctranslate2.
FROM python:3.12-slim-bookworm AS build
ARG RUNTIME=tensorflow
WORKDIR /source
ENV UV_PROJECT_ENVIRONMENT=/venv UV_NO_CACHE=1
RUN python -m pip install --no-cache-dir uv==0.13.9
COPY pyproject.toml uv.lock ./
RUN uv sync --frozen --extra serve --extra "$RUNTIME" --no-install-project
COPY setup.py README.md LICENSE ./
COPY tfformer ./tfformer
RUN uv sync --frozen --extra serve --extra "$RUNTIME" --no-editable

FROM python:3.12-slim-bookworm
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH TF_CPP_MIN_LOG_LEVEL=3
RUN useradd --create-home --uid 10001 serve
USER 10001
WORKDIR /home/serve
EXPOSE 8501
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=120s \
  CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8501/healthz')"]
ENTRYPOINT ["tfformer", "serve", "--host", "0.0.0.0"]
CMD ["/models/model"]
